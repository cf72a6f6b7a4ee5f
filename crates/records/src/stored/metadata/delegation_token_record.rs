//! Generated from `crates/protocol/schemas/metadata/DelegationTokenRecord.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A record of the cluster metadata, type 10; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DelegationTokenRecord {
    /// `string`, versions 0+.
    pub owner: String,
    /// `string`, versions 0+.
    pub requester: String,
    /// `[]string`, versions 0+.
    pub renewers: Vec<String>,
    /// `int64`, versions 0+.
    pub issue_timestamp: i64,
    /// `int64`, versions 0+.
    pub max_timestamp: i64,
    /// `int64`, versions 0+.
    pub expiration_timestamp: i64,
    /// `string`, versions 0+.
    pub token_id: String,
}

impl Wire for DelegationTokenRecord {
    const SIZE_MIN: usize = 29;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            owner: r.read()?,
            requester: r.read()?,
            renewers: r.read()?,
            issue_timestamp: r.read()?,
            max_timestamp: r.read()?,
            expiration_timestamp: r.read()?,
            token_id: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.owner.write(w)?;
        self.requester.write(w)?;
        self.renewers.write(w)?;
        self.issue_timestamp.write(w)?;
        self.max_timestamp.write(w)?;
        self.expiration_timestamp.write(w)?;
        self.token_id.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for DelegationTokenRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("owner", &self.owner, v);
        it.put("requester", &self.requester, v);
        it.put("renewers", &self.renewers, v);
        it.put("issueTimestamp", &self.issue_timestamp, v);
        it.put("maxTimestamp", &self.max_timestamp, v);
        it.put("expirationTimestamp", &self.expiration_timestamp, v);
        it.put("tokenId", &self.token_id, v);
        it.into()
    }
}

impl Message for DelegationTokenRecord {
    const NAME: &'static str = "DelegationTokenRecord";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
