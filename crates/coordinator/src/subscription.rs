//! What members of consumer groups subscribe to, read from the bytes that they send
//! (`ConsumerProtocolSubscription`, versions 0 to 3 and any later one).

use std::collections::BTreeSet;

use highwater_records::wire::{DecodeError, Reader};

use crate::group::Group;

/// The protocol type of consumers; members of other types tell what they like.
pub(crate) const CONSUMER_PROTOCOL_TYPE: &str = "consumer";

/// The topics that the members of a group read: their offsets neither expire nor can be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subscribed {
    /// Nobody can say which.
    Unknown,
    /// These.
    To(BTreeSet<String>),
}

impl Subscribed {
    /// Whether `topic` is, or may be, one of them.
    pub(crate) fn has(&self, topic: &str) -> bool {
        match self {
            Self::Unknown => true,
            Self::To(topics) => topics.contains(topic),
        }
    }
}

impl Group {
    /// What its members read. A group that is not one of consumers reads nothing.
    pub(crate) fn subscribed(&self) -> Subscribed {
        if let Some(foreign) = &self.foreign {
            return foreign.subscribed();
        }
        let members = &self.members;
        if members.protocol_type.as_deref() != Some(CONSUMER_PROTOCOL_TYPE) || members.is_empty() {
            return Subscribed::To(BTreeSet::new());
        }
        let Some(protocol) = &members.protocol_name else {
            return Subscribed::Unknown;
        };
        let mut all = BTreeSet::new();
        for (_, member) in members.iter() {
            match subscribed_topics(&member.metadata(protocol)) {
                Some(topics) => all.extend(topics.into_iter().map(str::to_owned)),
                None => return Subscribed::Unknown,
            }
        }
        Subscribed::To(all)
    }
}

/// The topics in a member's metadata. `None` when the bytes are no subscription: then nobody can
/// say what the member reads, and every topic counts as subscribed, as in Kafka.
///
/// All versions begin with the topics and the user data; what follows is not looked at.
pub(crate) fn subscribed_topics(metadata: &[u8]) -> Option<Vec<&str>> {
    read(metadata).ok()
}

fn read(metadata: &[u8]) -> Result<Vec<&str>, DecodeError> {
    let mut r = Reader::from_slice(metadata);
    let _version: i16 = r.read()?;
    r.start(0, false);
    let count = r.count(size_of::<i16>())?;
    let mut topics = Vec::with_capacity(count);
    for _ in 0..count {
        topics.push(r.str()?);
    }
    r.nullable_slice()?;
    Ok(topics)
}

#[cfg(test)]
mod tests {
    use highwater_records::stored::data::ConsumerProtocolSubscription;
    use highwater_records::wire::{Message as _, Writer};
    use proptest::prelude::*;

    use super::*;

    fn subscription(version: i16, topics: &[&str]) -> Vec<u8> {
        let it = ConsumerProtocolSubscription {
            topics: topics.iter().map(|&it| it.to_owned()).collect(),
            user_data: Some(bytes::Bytes::from_static(b"sticky")),
            ..ConsumerProtocolSubscription::default()
        };
        let mut w = Writer::new();
        w.write(&version).expect("a number");
        it.encode(&mut w, version).expect("a subscription");
        w.into_bytes().to_vec()
    }

    #[test]
    fn every_version_tells_its_topics() {
        for version in 0..=3 {
            let bytes = subscription(version, &["orders", "payments"]);
            let topics = subscribed_topics(&bytes);
            assert_eq!(
                topics,
                Some(vec!["orders", "payments"]),
                "version {version}"
            );
        }
        // A version that nobody knows yet, with more behind.
        let mut bytes = subscription(0, &["orders"]);
        bytes.splice(0..2, [0, 9]);
        bytes.extend_from_slice(b"and so on");
        assert_eq!(subscribed_topics(&bytes), Some(vec!["orders"]));
    }

    #[test]
    fn b_46_blobs_of_no_or_one_byte_are_no_subscription() {
        assert_eq!(subscribed_topics(&[]), None);
        assert_eq!(subscribed_topics(&[0]), None);
        let whole = subscription(3, &["orders", "payments"]);
        // Cut within topics or user data: nothing, and nothing is read past the end.
        let v0_len = subscription(0, &["orders", "payments"]).len();
        for len in 0..v0_len {
            assert_eq!(subscribed_topics(&whole[..len]), None, "{len} bytes");
        }
    }

    #[test]
    fn b_46_counts_that_lie_reserve_nothing() {
        let huge = [0, 0, 0x7f, 0xff, 0xff, 0xff];
        assert_eq!(subscribed_topics(&huge), None);
        let negative = [0, 0, 0xff, 0xff, 0xff, 0xfe];
        assert_eq!(subscribed_topics(&negative), None);
    }

    proptest! {
        #[test]
        fn b_46_no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = subscribed_topics(&bytes);
        }
    }
}
