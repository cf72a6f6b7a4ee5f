//! What captured members of groups told each other is what ours tell.
#![allow(clippy::indexing_slicing, reason = "a test fails by panics")]

use std::path::Path;

use bytes::Bytes;
use highwater_fixtures::{Files, unhex, wire};
use highwater_protocol::client::group::{
    Assignor, GroupMemberView, Subscription, TopicCounts, decode_assignment, encode_assignment,
};
use highwater_protocol::messages::{JoinGroupResponse, SyncGroupRequest};
use highwater_protocol::wire::Message as _;
use highwater_protocol::{ApiKey, Request, RequestHeader};
use highwater_types::TopicName;

fn frame(files: &Files, path: &str) -> Bytes {
    let hex = files.get(Path::new(path));
    Bytes::from(unhex(
        hex.unwrap_or_else(|| panic!("{path} is in the fixture")),
    ))
}

fn request(frame: Bytes, api: ApiKey) -> Request {
    let mut body = frame;
    let header = RequestHeader::decode(&mut body).expect("a header");
    assert_eq!(header.api_key, api.raw());
    Request::decode(api, header.version, body).expect("a request")
}

/// All captured requests in `folder`.
fn requests(folder: &str, api: ApiKey) -> Vec<Request> {
    let files = wire();
    let of_folder = files.keys().filter_map(|path| path.to_str());
    let of_folder = of_folder.filter(|it| it.starts_with(folder) && it.ends_with(".request.hex"));
    of_folder
        .map(|path| request(frame(&files, path), api))
        .collect()
}

#[test]
fn captured_subscriptions_are_read_and_the_newest_are_written_alike() {
    let (mut read, mut written) = (0, 0);
    for request in requests("11-JoinGroup", ApiKey::JoinGroup) {
        let Request::JoinGroup(join) = request else {
            panic!("{request:?}");
        };
        for protocol in join.protocols {
            let told = Subscription::decode(&protocol.metadata).expect("a subscription");
            assert!(!told.topics.is_empty(), "{told:?}");
            read += 1;
            // Version 3, without bytes that some clients write where Kafka writes null.
            if protocol.metadata[..2] == [0, 3] {
                assert_eq!(told.encode().expect("small"), protocol.metadata, "{told:?}");
                written += 1;
            }
        }
    }
    assert!(
        read >= 30 && written >= 10,
        "{read} read, {written} written"
    );
}

#[test]
fn captured_assignments_are_read() {
    let mut owned = 0;
    for request in requests("14-SyncGroup", ApiKey::SyncGroup) {
        let Request::SyncGroup(sync) = request else {
            panic!("{request:?}");
        };
        for it in sync.assignments {
            let assigned = decode_assignment(&it.assignment).expect("an assignment");
            owned += assigned.len();
        }
    }
    assert!(owned >= 20, "{owned}");
}

/// Java's consumer led a group with a static member; from the same words ours deals the same.
#[test]
fn the_range_assignor_deals_as_kafkas_own() {
    let files = wire();
    let answer = frame(&files, "11-JoinGroup/v9-02.response.hex");
    // Correlation id and the tagged fields of the header, none.
    let joined = JoinGroupResponse::from_bytes(&answer.slice(5..), 9).expect("an answer");
    let members: Vec<GroupMemberView> = joined
        .members
        .iter()
        .map(|member| GroupMemberView {
            member_id: member.member_id.clone(),
            instance_id: member.group_instance_id.clone(),
            subscription: Subscription::decode(&member.metadata).expect("a subscription"),
        })
        .collect();
    assert_eq!(members.len(), 2);
    let sync = request(
        frame(&files, "14-SyncGroup/v5-01.request.hex"),
        ApiKey::SyncGroup,
    );
    let Request::SyncGroup(SyncGroupRequest { assignments, .. }) = sync else {
        panic!("{sync:?}");
    };
    let counts = TopicCounts::from([(TopicName::new("plain").expect("a name"), 3)]);
    let ours = Assignor::Range.assign(&counts, &members);
    assert_eq!(ours.len(), assignments.len());
    for theirs in assignments {
        let ours = encode_assignment(&ours[&theirs.member_id]).expect("small");
        assert_eq!(ours, theirs.assignment, "{}", theirs.member_id);
    }
}
