//! Generated from `crates/protocol/schemas/data/LeaderChangeMessage.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::{NodeId, Uuid};
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// Stored data; versions 0-1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderChangeMessage {
    /// `int16`, versions 0+.
    pub version: i16,
    /// `int32`, versions 0+.
    pub leader_id: NodeId,
    /// `[]Voter`, versions 0+.
    pub voters: Vec<Voter>,
    /// `[]Voter`, versions 0+.
    pub granting_voters: Vec<Voter>,
}

impl Default for LeaderChangeMessage {
    fn default() -> Self {
        Self {
            version: 0,
            leader_id: NodeId::new(0),
            voters: Vec::new(),
            granting_voters: Vec::new(),
        }
    }
}

impl Wire for LeaderChangeMessage {
    const SIZE_MIN: usize = 9;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            version: r.read()?,
            leader_id: r.read()?,
            voters: r.read()?,
            granting_voters: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.version.write(w)?;
        self.leader_id.write(w)?;
        self.voters.write(w)?;
        self.granting_voters.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for LeaderChangeMessage {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("version", &self.version, v);
        it.put("leaderId", &self.leader_id, v);
        it.put("voters", &self.voters, v);
        it.put("grantingVoters", &self.granting_voters, v);
        it.into()
    }
}

/// Part of [`LeaderChangeMessage`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Voter {
    /// `int32`, versions 0+.
    pub voter_id: NodeId,
    /// `uuid`, versions 1+.
    pub voter_directory_id: Uuid,
}

impl Default for Voter {
    fn default() -> Self {
        Self {
            voter_id: NodeId::new(0),
            voter_directory_id: Uuid::ZERO,
        }
    }
}

impl Wire for Voter {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            voter_id: r.read()?,
            ..Self::default()
        };
        if v >= 1 {
            it.voter_directory_id = r.read()?;
        }
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.voter_id.write(w)?;
        if v >= 1 {
            self.voter_directory_id.write(w)?;
        } else {
            w.absent(self.voter_directory_id == Uuid::ZERO, "VoterDirectoryId")?;
        }
        w.no_tags();
        Ok(())
    }
}

impl ToJson for Voter {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("voterId", &self.voter_id, v);
        if v >= 1 {
            it.put("voterDirectoryId", &self.voter_directory_id, v);
        }
        it.into()
    }
}

impl Message for LeaderChangeMessage {
    const NAME: &'static str = "LeaderChangeMessage";
    const VERSIONS: (i16, i16) = (0, 1);
    const FLEXIBLE_SINCE: i16 = 0;
}
