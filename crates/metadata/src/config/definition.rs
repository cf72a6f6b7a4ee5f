/// The type of a config's value, by Kafka's number in DescribeConfigs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigType {
    /// `true` or `false`.
    Boolean,
    /// Any text.
    String,
    /// 32 bits.
    Int,
    /// 16 bits.
    Short,
    /// 64 bits.
    Long,
    /// A decimal number.
    Double,
    /// Texts, separated by commas.
    List,
    /// The name of a Java class: accepted and shown, never loaded.
    Class,
    /// A secret: never shown.
    Password,
}

impl ConfigType {
    /// Kafka's number of the type in DescribeConfigs answers.
    #[must_use]
    pub const fn to_wire(self) -> i8 {
        match self {
            Self::Boolean => 1,
            Self::String => 2,
            Self::Int => 3,
            Self::Short => 4,
            Self::Long => 5,
            Self::Double => 6,
            Self::List => 7,
            Self::Class => 8,
            Self::Password => 9,
        }
    }

    /// Kafka's name of the type, as its messages spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Boolean => "BOOLEAN",
            Self::String => "STRING",
            Self::Int => "INT",
            Self::Short => "SHORT",
            Self::Long => "LONG",
            Self::Double => "DOUBLE",
            Self::List => "LIST",
            Self::Class => "CLASS",
            Self::Password => "PASSWORD",
        }
    }
}

/// What values a config takes, beyond its type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Valid {
    /// Whatever the type takes.
    Any,
    /// A number from `0` to `1`, both inclusive.
    Between(i64, i64),
    /// The first number, or one from the second to the third, both inclusive.
    OneOrBetween(i64, i64, i64),
    /// A decimal number in this range (inclusive).
    Fraction(f64, f64),
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A list of these texts, each at most once.
    ListOf(&'static [&'static str]),
    /// A list of replicas as PARTITION:BROKER, or `*`.
    Replicas,
}

/// Whether and for whom a config can change while the broker runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Only by a restart: shown as read only.
    Static,
    /// For one broker.
    PerBroker,
    /// For one broker or for all of them.
    ClusterWide,
}

/// How much a config matters to somebody who reads the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Importance {
    /// Look at it.
    High,
    /// Good to know.
    Medium,
    /// Rarely touched.
    Low,
}

/// Whether this build does what the config says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It does.
    Works,
    /// The key is taken and shown, but changes nothing yet.
    NotYet,
}

/// The definition of one config key: the only place that knows its name, type, default and
/// meaning. Parsing, DescribeConfigs, help and the reference page all read it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfigKey {
    /// The name, in Kafka's spelling.
    pub name: &'static str,
    /// The value's type.
    pub kind: ConfigType,
    /// The value when nobody sets one; `None` is Kafka's null.
    pub default: Option<&'static str>,
    /// What values it takes.
    pub valid: Valid,
    /// Whether it can change at run time.
    pub update: Update,
    /// How much it matters.
    pub importance: Importance,
    /// Whether this build acts on it.
    pub effect: Effect,
    /// One or two sentences for people.
    pub doc: &'static str,
}

impl ConfigKey {
    /// Whether the value is a secret: never shown, never logged.
    #[must_use]
    pub const fn is_sensitive(&self) -> bool {
        matches!(self.kind, ConfigType::Password)
    }
}

/// A table of keys, two lines each: name, type, default (`none` for null), valid values, update
/// mode, importance and effect, then the doc.
macro_rules! config_keys {
    ($(#[$meta:meta])* $table:ident; $(
        $name:literal $kind:ident $default:tt $valid:tt $update:ident $level:ident $effect:ident
        $doc:literal;
    )*) => {
        $(#[$meta])*
        pub(crate) const $table: &[$crate::config::ConfigKey] = &[$(
            $crate::config::ConfigKey {
                name: $name,
                kind: $crate::config::ConfigType::$kind,
                default: $crate::config::definition::default_of!($default),
                valid: $crate::config::definition::valid_of!($valid),
                update: $crate::config::Update::$update,
                importance: $crate::config::Importance::$level,
                effect: $crate::config::Effect::$effect,
                doc: $doc,
            },
        )*];
    };
}

macro_rules! default_of {
    (none) => {
        None
    };
    ($text:literal) => {
        Some($text)
    };
}

macro_rules! valid_of {
    (any) => {
        $crate::config::Valid::Any
    };
    ([$least:literal]) => {
        $crate::config::Valid::Between($least, i64::MAX)
    };
    ([$least:literal, $most:literal]) => {
        $crate::config::Valid::Between($least, $most)
    };
    ((or $one:literal $least:literal $most:literal)) => {
        $crate::config::Valid::OneOrBetween($one, $least, $most)
    };
    (replicas) => {
        $crate::config::Valid::Replicas
    };
    ((fraction $least:literal $most:literal)) => {
        $crate::config::Valid::Fraction($least, $most)
    };
    ({ $($text:literal)* }) => {
        $crate::config::Valid::OneOf(&[$($text),*])
    };
    ((list $($text:literal)*)) => {
        $crate::config::Valid::ListOf(&[$($text),*])
    };
}

pub(crate) use {config_keys, default_of, valid_of};
