//! Stored records that are not what they should be: told apart, never taken in by half.

use highwater_records::stored::metadata::{
    BrokerRegistrationChangeRecord, PartitionRecord, TopicRecord,
};
use highwater_records::stored::{GroupRecord, MetadataRecord};
use highwater_records::wire::{DecodeError, EncodeError};
use highwater_types::{NodeId, Uuid};

fn topic() -> MetadataRecord {
    let topic_id = Uuid::from_u128(7);
    MetadataRecord::from(TopicRecord {
        name: "orders".into(),
        topic_id,
    })
}

#[test]
fn a_metadata_record_fills_its_value() {
    let value = topic().encode_value(0).expect("encodes");
    assert_eq!(MetadataRecord::decode_value(&value), Ok((topic(), 0)));
    let longer = [value.as_ref(), b"\0"].concat();
    assert_eq!(
        MetadataRecord::decode_value(&longer),
        Err(DecodeError::Trailing { left: 1 })
    );
    for len in 0..value.len() {
        assert!(
            MetadataRecord::decode_value(&value.slice(..len)).is_err(),
            "{len}"
        );
    }
}

#[test]
fn unknown_frames_types_and_versions_are_told_apart() {
    let decode = MetadataRecord::decode_value;
    assert_eq!(decode(b"\x02\x02\0"), Err(DecodeError::RecordFrame(2)));
    assert_eq!(decode(b"\x01\x63\0"), Err(DecodeError::RecordType(99)));
    let unknown = DecodeError::Version {
        message: "TopicRecord",
        version: 1,
    };
    assert_eq!(decode(b"\x01\x02\x01"), Err(unknown));
    let absurd = decode(b"\x01\x02\xff\xff\xff\xff\x0f");
    assert!(matches!(
        absurd,
        Err(DecodeError::Version {
            version: i16::MAX,
            ..
        })
    ));
    let group = GroupRecord::decode(b"\0\x63", None);
    assert_eq!(group, Err(DecodeError::RecordType(99)));
    let key = b"\0\x03\0\x01g";
    assert!(matches!(
        GroupRecord::decode(key, None),
        Ok((GroupRecord::ConsumerGroupMetadata(..), 0))
    ));
    let longer = [key.as_slice(), b"x"].concat();
    assert_eq!(
        GroupRecord::decode(&longer, None),
        Err(DecodeError::Trailing { left: 1 })
    );
    let value = GroupRecord::decode(key, Some(b"\0\0\0\0\0\x05\0x"));
    assert_eq!(value, Err(DecodeError::Trailing { left: 1 }));
}

#[test]
fn a_version_that_cannot_carry_a_field_is_refused() {
    let record = PartitionRecord {
        directories: vec![Uuid::from_u128(9)],
        ..PartitionRecord::default()
    };
    let absent = EncodeError::Absent {
        field: "Directories",
        version: 0,
    };
    assert_eq!(MetadataRecord::from(record).encode_value(0), Err(absent));
}

#[test]
fn a_registration_change_is_written_at_the_lowest_version_that_carries_it() {
    let change = |set: fn(&mut BrokerRegistrationChangeRecord)| {
        let mut record = BrokerRegistrationChangeRecord {
            broker_id: NodeId::new(1),
            broker_epoch: 14,
            ..BrokerRegistrationChangeRecord::default()
        };
        set(&mut record);
        MetadataRecord::from(record).usual_version()
    };
    assert_eq!(change(|it| it.fenced = -1), 0);
    assert_eq!(change(|it| it.in_controlled_shutdown = 1), 1);
    assert_eq!(change(|it| it.log_dirs = vec![Uuid::from_u128(9)]), 2);
    assert_eq!(change(|it| it.cordoned_log_dirs = Some(vec![])), 3);
    assert_eq!(topic().usual_version(), 0);
    assert_eq!(
        MetadataRecord::from(PartitionRecord::default()).usual_version(),
        2
    );
}
