use std::fmt;

use highwater_types::TopicId;

/// How a Produce or Fetch message names a topic: by name, or from version 13 on by id (KIP-516).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TopicKey<'a> {
    /// The topic's name, as sent; it may be no legal name.
    Name(&'a str),
    /// The topic's id.
    Id(TopicId),
}

impl<'a> TopicKey<'a> {
    /// The name, when that is what was sent.
    #[must_use]
    pub const fn name(self) -> Option<&'a str> {
        match self {
            Self::Name(name) => Some(name),
            Self::Id(_) => None,
        }
    }

    /// The id, when that is what was sent.
    #[must_use]
    pub const fn id(self) -> Option<TopicId> {
        match self {
            Self::Name(_) => None,
            Self::Id(id) => Some(id),
        }
    }
}

impl fmt::Display for TopicKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.escape_debug().fmt(f),
            Self::Id(id) => id.fmt(f),
        }
    }
}
