//! Generated from `crates/protocol/schemas/data/VotersRecord.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::{NodeId, Uuid};
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// Stored data; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VotersRecord {
    /// `int16`, versions 0+.
    pub version: i16,
    /// `[]Voter`, versions 0+.
    pub voters: Vec<Voter>,
}

impl Wire for VotersRecord {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            version: r.read()?,
            voters: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.version.write(w)?;
        self.voters.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for VotersRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("version", &self.version, v);
        it.put("voters", &self.voters, v);
        it.into()
    }
}

/// Part of [`VotersRecord`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Voter {
    /// `int32`, versions 0+.
    pub voter_id: NodeId,
    /// `uuid`, versions 0+.
    pub voter_directory_id: Uuid,
    /// `[]Endpoint`, versions 0+.
    pub endpoints: Vec<Endpoint>,
    /// `KRaftVersionFeature`, versions 0+.
    pub kraft_version_feature: KRaftVersionFeature,
}

impl Default for Voter {
    fn default() -> Self {
        Self {
            voter_id: NodeId::new(0),
            voter_directory_id: Uuid::ZERO,
            endpoints: Vec::new(),
            kraft_version_feature: KRaftVersionFeature::default(),
        }
    }
}

impl Wire for Voter {
    const SIZE_MIN: usize = 27;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            voter_id: r.read()?,
            voter_directory_id: r.read()?,
            endpoints: r.read()?,
            kraft_version_feature: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.voter_id.write(w)?;
        self.voter_directory_id.write(w)?;
        self.endpoints.write(w)?;
        self.kraft_version_feature.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for Voter {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("voterId", &self.voter_id, v);
        it.put("voterDirectoryId", &self.voter_directory_id, v);
        it.put("endpoints", &self.endpoints, v);
        it.put("kRaftVersionFeature", &self.kraft_version_feature, v);
        it.into()
    }
}

/// Part of [`VotersRecord`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// `string`, versions 0+.
    pub name: String,
    /// `string`, versions 0+.
    pub host: String,
    /// `uint16`, versions 0+.
    pub port: u16,
}

impl Wire for Endpoint {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            name: r.read()?,
            host: r.read()?,
            port: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.name.write(w)?;
        self.host.write(w)?;
        self.port.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for Endpoint {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("name", &self.name, v);
        it.put("host", &self.host, v);
        it.put("port", &self.port, v);
        it.into()
    }
}

/// Part of [`VotersRecord`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KRaftVersionFeature {
    /// `int16`, versions 0+.
    pub min_supported_version: i16,
    /// `int16`, versions 0+.
    pub max_supported_version: i16,
}

impl Wire for KRaftVersionFeature {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            min_supported_version: r.read()?,
            max_supported_version: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.min_supported_version.write(w)?;
        self.max_supported_version.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for KRaftVersionFeature {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("minSupportedVersion", &self.min_supported_version, v);
        it.put("maxSupportedVersion", &self.max_supported_version, v);
        it.into()
    }
}

impl Message for VotersRecord {
    const NAME: &'static str = "VotersRecord";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
