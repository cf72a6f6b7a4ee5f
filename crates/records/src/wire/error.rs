/// Why bytes are not the message that they should be. The sender's fault; holds no payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end too early, or a length points past their end.
    #[error("{needed} bytes are needed where {left} are left")]
    Truncated {
        /// Bytes that the field asks for.
        needed: usize,
        /// Bytes that are left in the message, or in the tagged field.
        left: usize,
    },
    /// A varint of more than 5 bytes, a varlong of more than 10, or one with too many bits.
    #[error("a variable-length integer is too long")]
    Varint,
    /// A length or count below -1.
    #[error("{0} is not a length")]
    Length(i32),
    /// An array that cannot have as many elements as it says.
    #[error("{count} elements cannot be in the {left} bytes that are left")]
    Count {
        /// The announced number of elements.
        count: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// Arrays that fit the message but whose elements would take up too much memory.
    #[error("the elements of the message take up too much memory")]
    Memory,
    /// Null where this version does not allow it.
    #[error("null where it is not allowed")]
    Null,
    /// A string that is not UTF-8.
    #[error("a string is not UTF-8")]
    Utf8,
    /// A string of more bytes than any may have, though its length field could say so.
    #[error("a string of {0} bytes is too long")]
    LongString(usize),
    /// Tags do not rise.
    #[error("tag {tag} does not come after tag {after}")]
    TagOrder {
        /// The tag in the wrong place.
        tag: u32,
        /// The tag before it.
        after: u32,
    },
    /// A known tagged field that does not fill its announced size.
    #[error("{left} bytes are left over in tag {tag}")]
    TagSize {
        /// The tag.
        tag: u32,
        /// Bytes that the field did not take.
        left: usize,
    },
    /// Bytes after the end, where nothing may follow.
    #[error("{left} bytes are left over")]
    Trailing {
        /// How many.
        left: usize,
    },
    /// A version of the message that this build does not know.
    #[error("{message} has no version {version} here")]
    Version {
        /// The message.
        message: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// A stored record of a type that this build does not know.
    #[error("a stored record has the unknown type {0}")]
    RecordType(i64),
    /// A stored record with a frame that this build does not know.
    #[error("a stored record has the unknown frame version {0}")]
    RecordFrame(i64),
}

/// Why a message cannot be written at a version. The fault of our own caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The message does not exist at this version.
    #[error("{message} has no version {version}")]
    Version {
        /// The message.
        message: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// A field has a value that the version cannot carry and that must not be dropped.
    #[error("version {version} cannot carry {field}")]
    Absent {
        /// The field, as its schema spells it.
        field: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// Null where this version does not allow it.
    #[error("null where version {version} does not allow it")]
    Null {
        /// The version asked for.
        version: i16,
    },
    /// A string, byte array or array that is too long for its length field.
    #[error("a length of {0} does not fit its field")]
    TooLong(usize),
}
