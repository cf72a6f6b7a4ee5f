//! Requests that no honest client sends, named after the list of bad inputs (B-09 to B-14). Each
//! is an error, which closes its connection, and reserves no memory for what is not there.

use bytes::{BufMut as _, Bytes, BytesMut};
use highwater_protocol::messages::{FetchRequest, MetadataRequest, ProduceRequest};
use highwater_protocol::wire::{DecodeError, Message as _, Reader, Writer};
use highwater_protocol::{ApiKey, FetchView, ProduceView, Request};

fn metadata(version: i16, body: &[u8]) -> Result<Request, DecodeError> {
    Request::decode(ApiKey::Metadata, version, Bytes::copy_from_slice(body))
}

fn produce(version: i16, body: &[u8]) -> Result<ProduceView, DecodeError> {
    let body = Bytes::copy_from_slice(body);
    let view = ProduceView::decode(body.clone(), version);
    assert_eq!(
        view.is_ok(),
        ProduceRequest::from_bytes(&body, version).is_ok()
    );
    view
}

fn fetch(version: i16, body: &[u8]) -> Result<FetchView, DecodeError> {
    let body = Bytes::copy_from_slice(body);
    let view = FetchView::decode(body.clone(), version);
    assert_eq!(
        view.is_ok(),
        FetchRequest::from_bytes(&body, version).is_ok()
    );
    view
}

#[test]
fn b_09_strings_of_wrong_length_or_text() {
    let name = |name: &[u8]| metadata(1, &[b"\0\0\0\x01", name].concat());
    assert_eq!(name(b"\xff\xfe"), Err(DecodeError::Length(-2)));
    assert_eq!(name(b"\xff\xff"), Err(DecodeError::Null));
    assert_eq!(
        name(b"\x7f\xffab"),
        Err(DecodeError::Truncated {
            needed: 32_767,
            left: 2
        })
    );
    assert_eq!(name(b"\0\x03a\xffb"), Err(DecodeError::Utf8));
    let compact = |name: &[u8]| metadata(9, &[b"\x02", name].concat());
    assert_eq!(compact(b"\0\0"), Err(DecodeError::Null));
    assert_eq!(
        compact(b"\x7fab"),
        Err(DecodeError::Truncated {
            needed: 126,
            left: 2
        })
    );
    assert_eq!(compact(b"\x03\xc3\x28"), Err(DecodeError::Utf8));
}

#[test]
fn b_10_huge_counts_with_few_bytes_left() {
    let huge = i32::MAX.to_be_bytes();
    let body = [huge.as_slice(), &[0; 10]].concat();
    let count = DecodeError::Count {
        count: 0x7fff_ffff,
        left: 10,
    };
    assert_eq!(metadata(1, &body), Err(count));
    // transactional id, acks, time-out, then the topics.
    let body = [b"\xff\xff\0\x01\0\0\0\0".as_slice(), &huge, &[0; 10]].concat();
    assert_eq!(produce(3, &body), Err(count));
    // One topic with huge partitions.
    let body = [
        b"\xff\xff\0\x01\0\0\0\0\0\0\0\x01\0\x01t".as_slice(),
        &huge,
        &[0; 10],
    ]
    .concat();
    assert_eq!(produce(3, &body), Err(count));
    let body = [[0; 17].as_slice(), &huge, &[0; 10]].concat();
    assert_eq!(fetch(4, &body), Err(count));
    let compact = metadata(9, b"\xff\xff\xff\xff\x0f\0\0\0");
    assert_eq!(
        compact,
        Err(DecodeError::Count {
            count: 0xffff_fffe,
            left: 3
        })
    );
}

/// A count that the bytes allow, of elements that are far larger in memory than on the wire.
#[test]
fn b_10_elements_may_not_take_up_more_memory_than_their_frame_is_worth() {
    let empty_names = |count: u32| {
        let mut w = Writer::new();
        w.unsigned_varint(count + 1);
        // Topic id and an empty name, no tags.
        (0..count).for_each(|_| w.put(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]));
        w.put(&[1, 1, 0]);
        w.into_bytes()
    };
    let legal = Request::decode(ApiKey::Metadata, 12, empty_names(1000));
    assert!(legal.is_ok());
    let mut names = BytesMut::new();
    names.put_i32(4_000_000);
    names.put_bytes(0, 8_000_000);
    let names = names.freeze();
    let mut r = Reader::new(&names);
    // 4 million empty strings in 8 MB would be 96 MB of memory.
    assert_eq!(r.read::<Vec<String>>(), Err(DecodeError::Memory));
}

#[test]
fn b_11_null_and_negative_counts() {
    let topics = |count: i32| metadata(0, &count.to_be_bytes());
    assert_eq!(topics(-1), Err(DecodeError::Null));
    assert_eq!(topics(-2), Err(DecodeError::Length(-2)));
    assert_eq!(topics(i32::MIN), Err(DecodeError::Length(i32::MIN)));
    let head = [0; 17].as_slice();
    assert_eq!(
        fetch(4, &[head, &[0xff; 4]].concat()),
        Err(DecodeError::Null)
    );
    assert_eq!(
        fetch(4, &[head, b"\xff\xff\xff\xfe"].concat()),
        Err(DecodeError::Length(-2))
    );
    let head = b"\0\0\x01\0\0\0\0".as_slice();
    assert_eq!(
        produce(9, &[head, b"\0\0"].concat()),
        Err(DecodeError::Null)
    );
    // Null topics are legal in Metadata from version 1 on: all topics.
    assert!(metadata(1, &[0xff; 4]).is_ok());
}

#[test]
fn b_12_varints_that_are_too_long_or_cut() {
    let unsigned = |bytes: &'static [u8]| Reader::from_slice(bytes).unsigned_varint();
    let signed = |bytes: &'static [u8]| Reader::from_slice(bytes).varint();
    let long = |bytes: &'static [u8]| Reader::from_slice(bytes).varlong();
    assert_eq!(
        unsigned(b"\x80\x80\x80\x80\x80\x01"),
        Err(DecodeError::Varint)
    );
    assert_eq!(unsigned(b"\xff\xff\xff\xff\x1f"), Err(DecodeError::Varint));
    assert_eq!(unsigned(b"\xff\xff\xff\xff\x0f"), Ok(u32::MAX));
    assert_eq!(
        unsigned(b"\x80\x80"),
        Err(DecodeError::Truncated { needed: 1, left: 0 })
    );
    assert_eq!(
        unsigned(b""),
        Err(DecodeError::Truncated { needed: 1, left: 0 })
    );
    assert_eq!(
        signed(b"\x80\x80\x80\x80\x80\x01"),
        Err(DecodeError::Varint)
    );
    assert_eq!(signed(b"\xff\xff\xff\xff\x0f"), Ok(i32::MIN));
    assert_eq!(
        long(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        Ok(i64::MIN)
    );
    let eleven = b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01";
    assert_eq!(long(eleven), Err(DecodeError::Varint));
    assert_eq!(
        long(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"),
        Err(DecodeError::Varint)
    );
}

#[test]
fn b_12_varints_read_what_was_written() {
    for value in [0, 1, -1, 63, 64, -64, -65, i32::MAX, i32::MIN] {
        let mut w = Writer::new();
        w.varint(value);
        w.varlong(i64::from(value));
        w.varlong(i64::from(value) << 31);
        let bytes = w.into_bytes();
        let mut r = Reader::new(&bytes);
        assert_eq!(r.varint(), Ok(value));
        assert_eq!(r.varlong(), Ok(i64::from(value)));
        assert_eq!(r.varlong(), Ok(i64::from(value) << 31));
        assert_eq!(r.finish(), Ok(()));
    }
}

/// A Metadata v9 request for all topics, up to its tagged fields.
const UP_TO_TAGS: &[u8] = b"\0\0\0\0";

#[test]
fn b_13_tagged_fields() {
    let tags = |tags: &[u8]| metadata(9, &[UP_TO_TAGS, tags].concat());
    // Unknown ones are skipped.
    assert!(tags(b"\0").is_ok());
    assert!(tags(b"\x02\x05\x01x\xff\x01\0").is_ok());
    let huge_count = tags(b"\xff\xff\xff\xff\x0f\x01\x01x");
    assert_eq!(
        huge_count,
        Err(DecodeError::Truncated { needed: 1, left: 0 })
    );
    let past_the_end = tags(b"\x01\x05\x7fx");
    assert_eq!(
        past_the_end,
        Err(DecodeError::Truncated {
            needed: 127,
            left: 1
        })
    );
    let repeated = tags(b"\x02\x05\0\x05\0");
    assert_eq!(repeated, Err(DecodeError::TagOrder { tag: 5, after: 5 }));
    let falling = tags(b"\x02\x05\0\x04\0");
    assert_eq!(falling, Err(DecodeError::TagOrder { tag: 4, after: 5 }));
}

#[test]
fn b_14_bytes_left_over_are_ignored() {
    let request = MetadataRequest {
        topics: None,
        ..MetadataRequest::default()
    };
    let body = request.to_bytes(13).expect("encodes");
    let with_stray = [body.as_ref(), b"\0\0\0"].concat();
    assert_eq!(metadata(13, &with_stray), Ok(Request::from(request)));
    let body = FetchRequest::default().to_bytes(18).expect("encodes");
    let view = fetch(18, &[body.as_ref(), b"stray"].concat()).expect("a request");
    assert_eq!(view.body(), &body);
}

#[test]
fn b_14_nothing_reaches_out_of_its_parent() {
    // A Fetch v15 request whose ReplicaState tag is one byte short, then one byte long.
    let mut request = FetchRequest::default();
    request.replica_state.replica_epoch = 7;
    let body = request.to_bytes(15).expect("encodes");
    let size_at = body.len() - 14;
    let with_size = |size: u8, more: &[u8]| {
        let mut bytes = [body.as_ref(), more].concat();
        if let Some(byte) = bytes.get_mut(size_at) {
            assert_eq!(*byte, 13);
            *byte = size;
        }
        fetch(15, &bytes)
    };
    assert!(with_size(13, b"").is_ok());
    assert!(with_size(12, b"").is_err());
    assert_eq!(
        with_size(14, b"\0"),
        Err(DecodeError::TagSize { tag: 1, left: 1 })
    );
    assert_eq!(
        with_size(14, b""),
        Err(DecodeError::Truncated {
            needed: 14,
            left: 13
        })
    );
    // Records that are longer than their request.
    let body = b"\xff\xff\0\x01\0\0\0\0\0\0\0\x01\0\x01t\0\0\0\x01\0\0\0\0\0\0\0\x09abc";
    assert_eq!(
        produce(3, body),
        Err(DecodeError::Truncated { needed: 9, left: 3 })
    );
}

#[test]
fn versions_that_are_not_offered_do_not_decode() {
    for (api_key, version) in [
        (ApiKey::Produce, 2),
        (ApiKey::Produce, 14),
        (ApiKey::Fetch, 3),
        (ApiKey::Metadata, 99),
        (ApiKey::InitProducerId, 6),
        (ApiKey::ApiVersions, -1),
    ] {
        let refused = Request::decode(api_key, version, Bytes::from_static(&[0; 64]));
        assert!(
            matches!(refused, Err(DecodeError::Version { .. })),
            "{api_key} v{version}"
        );
    }
}
