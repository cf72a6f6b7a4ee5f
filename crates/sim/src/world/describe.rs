//! Frames between nodes in words, for stories that hold them back.

use bytes::{Buf as _, Bytes};
use highwater_node::{ConnId, Piece};
use highwater_protocol::messages::FetchResponse;
use highwater_protocol::{
    ApiKey, Request, RequestHeader, Response, TopicKey, response_header_version,
};
use highwater_records::Batches;
use highwater_types::Uuid;

use super::World;
use super::gates::Held;
use super::network::{Packet, late_bytes};

impl World {
    /// Tells of a frame that was held back and arrives now.
    pub(crate) fn tell_of_held(&mut self, conn: ConnId, held: &Held) {
        let Some(wire) = self.wires.get(&conn) else {
            return;
        };
        let Some((from, to)) = wire.route(held.towards) else {
            return;
        };
        let asked = wire.asked.front().copied();
        let what = match &held.packet {
            Packet::Request(frame) => self.request_in_words(frame),
            Packet::Answer(pieces) => match asked {
                Some(asked) => self.answer_in_words(asked, pieces),
                None => "an answer".to_owned(),
            },
            Packet::Close => "close".to_owned(),
        };
        self.tell(format!("{from} -> {to}: {what}"));
    }

    fn request_in_words(&self, frame: &Bytes) -> String {
        let Some((api_key, version)) = asked_by(frame) else {
            return "a request".to_owned();
        };
        let Some(Request::Fetch(view)) = decode(frame, api_key, version) else {
            return api_name(api_key);
        };
        let mut parts = Vec::new();
        for topic in view.topics() {
            let name = match topic.topic {
                TopicKey::Name(name) => name.to_owned(),
                TopicKey::Id(id) => self.name_in_words("", id.uuid()),
            };
            for partition in topic.partitions {
                let (number, at) = (partition.partition, partition.fetch_offset);
                parts.push(format!("{name}-{number} at {at}"));
            }
        }
        if parts.is_empty() {
            "fetch, as before".to_owned()
        } else {
            format!("fetch {}", parts.join(", "))
        }
    }

    fn answer_in_words(
        &self,
        (api_key, version): (ApiKey, i16),
        pieces: &[Piece<highwater_disk::MemFile>],
    ) -> String {
        let frame = late_bytes(pieces).and_then(|mut frame| {
            let header = 4 + usize::from(response_header_version(api_key, version) >= 1);
            (frame.len() >= header).then(|| {
                frame.advance(header);
                frame
            })
        });
        let response = frame.and_then(|it| Response::decode(api_key, version, &it).ok());
        match response {
            Some(Response::Fetch(response)) => self.fetched_in_words(&response),
            _ => format!("answer {}", api_name(api_key)),
        }
    }

    fn fetched_in_words(&self, response: &FetchResponse) -> String {
        let mut parts = Vec::new();
        for topic in &response.responses {
            let name = self.name_in_words(&topic.topic, topic.topic_id);
            for data in &topic.partitions {
                let mut part = format!(
                    "{name}-{} {} high-watermark={}",
                    data.partition_index, data.error_code, data.high_watermark
                );
                let diverging = &data.diverging_epoch;
                if diverging.end_offset >= 0 {
                    let (epoch, end) = (diverging.epoch, diverging.end_offset);
                    part.push_str(&format!(" diverging=({epoch}, {end})"));
                }
                if let Some(range) = range_of(data.records.as_deref().unwrap_or_default()) {
                    part.push_str(&format!(" records {range}"));
                }
                parts.push(part);
            }
        }
        if parts.is_empty() {
            "answer fetch, nothing new".to_owned()
        } else {
            format!("answer fetch {}", parts.join(", "))
        }
    }

    fn name_in_words(&self, name: &str, id: Uuid) -> String {
        if !name.is_empty() {
            return name.to_owned();
        }
        self.topic_name(id)
            .map_or_else(|| "__cluster_metadata".to_owned(), ToString::to_string)
    }
}

/// What a request frame asks, and in which version.
pub(super) fn asked_by(frame: &Bytes) -> Option<(ApiKey, i16)> {
    let mut head = frame.get(..4)?;
    let (raw, version) = (head.get_i16(), head.get_i16());
    Some((ApiKey::from_raw(raw)?, version))
}

fn decode(frame: &Bytes, api_key: ApiKey, version: i16) -> Option<Request> {
    let mut body = frame.clone();
    RequestHeader::decode(&mut body).ok()?;
    Request::decode(api_key, version, body).ok()
}

fn api_name(api_key: ApiKey) -> String {
    format!("{api_key:?}")
}

/// The offsets of the batches in an answer, as `[4,5)`.
fn range_of(records: &[u8]) -> Option<String> {
    let mut batches = Batches::new(records).map_while(Result::ok);
    let first = batches.next()?;
    let from = first.header().base_offset;
    let last = batches.last().unwrap_or(first);
    let end = last.header().next_offset();
    Some(format!("[{from},{end})"))
}
