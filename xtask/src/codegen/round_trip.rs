//! Every generated message at every version, against bytes that an interpreter of the schemas
//! wrote: they decode, and encode back to the same bytes. Damaged ones never panic.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use highwater_protocol::messages::{self, FetchRequest, ProduceRequest};
use highwater_protocol::wire::{DecodeError, Message as _, MessageInfo};
use highwater_protocol::{FetchView, ProduceView};
use highwater_records::stored;
use proptest::prelude::*;

use super::list::GROUPS;
use super::schema::{self, Message};
use super::schema_bytes::{Entropy, write};

/// Every generated message with its schema.
fn all() -> Vec<(MessageInfo, Message)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut schemas = BTreeMap::new();
    for group in &GROUPS {
        for file in super::schema_files(&root, group).expect("the schemas are there") {
            let text = std::fs::read_to_string(root.join(file)).expect("a schema");
            for message in schema::parse(&text).expect("a schema") {
                schemas.insert(message.name.clone(), message);
            }
        }
    }
    let lists = [
        messages::ALL,
        stored::metadata::ALL,
        stored::coordinator::ALL,
        stored::data::ALL,
    ];
    let all: Vec<_> = lists
        .into_iter()
        .flatten()
        .map(|info| (*info, schemas.remove(info.name).expect("it has a schema")))
        .collect();
    assert!(schemas.is_empty(), "not generated: {:?}", schemas.keys());
    all
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn entropy() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..400)
}

#[test]
fn every_message_at_every_version_encodes_back() {
    let all = all();
    assert!(all.len() > 100);
    proptest!(cases(64), |(entropy in entropy())| {
        for (info, schema) in &all {
            let (min, max) = info.versions;
            for version in min..=max {
                let bytes = Bytes::from(write(schema, version, &mut Entropy(&entropy)));
                let recoded = (info.recode)(&bytes, version);
                prop_assert_eq!(recoded, Ok((bytes, 0)), "{} v{}", info.name, version);
            }
        }
    });
}

#[test]
fn every_cut_of_every_message_is_an_error() {
    let all = all();
    proptest!(cases(4), |(entropy in entropy())| {
        for (info, schema) in &all {
            let (_, max) = info.versions;
            let bytes = Bytes::from(write(schema, max, &mut Entropy(&entropy)));
            for len in 0..bytes.len() {
                let cut = (info.recode)(&bytes.slice(..len), max);
                prop_assert!(cut.is_err(), "{} v{} cut to {}", info.name, max, len);
            }
        }
    });
}

#[test]
fn damaged_messages_never_panic_and_what_decodes_encodes() {
    let all = all();
    let damage = proptest::collection::vec((any::<u16>(), any::<u8>()), 1..4);
    proptest!(cases(64), |(entropy in entropy(), damage in damage)| {
        for (info, schema) in &all {
            let (min, max) = info.versions;
            for version in min..=max {
                let mut bytes = write(schema, version, &mut Entropy(&entropy));
                for (at, value) in &damage {
                    let len = bytes.len().max(1);
                    if let Some(byte) = bytes.get_mut(usize::from(*at) % len) {
                        *byte = *value;
                    }
                }
                let bytes = Bytes::from(bytes);
                let recoded = (info.recode)(&bytes, version);
                if let Err(why) = recoded {
                    let is_theirs = matches!(
                        why,
                        highwater_protocol::wire::RecodeError::Decode(_)
                    );
                    prop_assert!(is_theirs, "{} v{}: {}", info.name, version, why);
                }
                check_views(info.name, version, &bytes)?;
            }
        }
    });
}

/// The views accept exactly what the decoders that build trees accept.
fn check_views(name: &str, version: i16, bytes: &Bytes) -> Result<(), TestCaseError> {
    let (view, tree): (Result<Bytes, DecodeError>, Result<Bytes, DecodeError>) = match name {
        "ProduceRequest" => (
            ProduceView::decode(bytes.clone(), version).map(|it| {
                assert_eq!(
                    it.topics().flat_map(|it| it.partitions).count(),
                    it.partition_count()
                );
                let _ = it.transactional_id();
                it.body().clone()
            }),
            ProduceRequest::from_bytes(bytes, version)
                .map(|it| it.to_bytes(version).expect("what was decoded")),
        ),
        "FetchRequest" => (
            FetchView::decode(bytes.clone(), version).map(|it| {
                assert!(it.topics().all(|it| it.partitions.count() < usize::MAX));
                assert!(
                    it.forgotten_topics()
                        .all(|it| it.partitions.count() < usize::MAX)
                );
                let _ = (it.rack_id(), it.cluster_id());
                it.body().clone()
            }),
            FetchRequest::from_bytes(bytes, version)
                .map(|it| it.to_bytes(version).expect("what was decoded")),
        ),
        _ => return Ok(()),
    };
    // Which error it is may differ: a view knows the smallest topic of its version.
    prop_assert_eq!(view.is_ok(), tree.is_ok(), "{} v{}", name, version);
    if let (Ok(view), Ok(tree)) = (view, tree) {
        // Tagged fields that the tree does not keep may follow in the view.
        prop_assert!(view.len() >= tree.len(), "{} v{}", name, version);
    }
    Ok(())
}
