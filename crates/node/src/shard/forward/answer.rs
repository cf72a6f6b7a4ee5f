use bytes::Bytes;
use highwater_disk::Disk;
use highwater_protocol::messages::{DescribeQuorumResponse, EnvelopeResponse};
use highwater_protocol::{ApiKey, Request, RequestHeader, Response};
use highwater_types::{ErrorCode, Now, TopicName};

use super::CREATE_TOPICS;
use super::held::Awaited;
use crate::control::convert;
use crate::envelope::open_answer;
use crate::journal::{JournalEntry, Level};
use crate::machine::{Answer, Effect, PeerError, Ticket};
use crate::shard::requests::push_answer;
use crate::shard::{Effects, Shard};

/// A client's request that is forwarded.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(super) ticket: Ticket,
    pub(super) api_key: ApiKey,
    pub(super) version: i16,
    pub(super) correlation_id: i32,
    /// Header and body as the client sent them. They stay counted against the memory for requests
    /// until the answer is there.
    pub(super) frame: Bytes,
    /// What this broker has to know before it answers.
    pub(super) awaited: Awaited,
}

impl<D: Disk> Shard<D> {
    /// Gives a client the controller's answer to its request, or tells it that there is none.
    pub(super) fn forwarded_answered(
        &mut self,
        now: Now,
        asked: Asked,
        result: Result<Response, PeerError>,
        out: &mut Effects<D>,
    ) {
        let ticket = asked.ticket;
        match opened(&asked, result) {
            Ok((body, response)) => {
                let awaited = (asked.awaited, &response);
                self.give_or_hold(now, ticket, body, awaited, out);
            }
            Err(ErrorCode::UNSUPPORTED_VERSION) => {
                // The client asks anew which versions there are.
                let answer = Answer::close();
                out.push(Effect::Answer { ticket, answer });
            }
            Err(code) => match refused(&asked, code) {
                Some(response) => {
                    push_answer(ticket, asked.version, &response, out);
                }
                None => {
                    let answer = Answer::close();
                    out.push(Effect::Answer { ticket, answer });
                }
            },
        }
    }

    /// Topics were made on the side, or were not. Nobody waits for it, so failures are told here.
    pub(super) fn auto_created(
        &mut self,
        names: &[TopicName],
        result: Result<Response, PeerError>,
        out: &mut Effects<D>,
    ) {
        for name in names {
            self.serve.forwarding.auto_creating.remove(name);
        }
        let made = match result {
            Ok(Response::Envelope(response)) => opened_create_topics(response),
            Ok(Response::CreateTopics(response)) => Ok(response),
            other => Err(code_of(&other)),
        };
        let mut warn = |text: String| {
            out.push(Effect::Event(JournalEntry::text(Level::Warn, text)));
        };
        match made {
            Ok(response) => {
                let failed = response.topics.iter().filter(|it| {
                    // Somebody else was faster: just as well.
                    it.error_code.is_error() && it.error_code != ErrorCode::TOPIC_ALREADY_EXISTS
                });
                for topic in failed {
                    let why = topic.error_message.as_deref().unwrap_or_default();
                    let (name, code) = (&topic.name, topic.error_code);
                    warn(format!("topic {name} was not made: {code}: {why}"));
                }
            }
            Err(code) => warn(format!("topics were not made: {}", no_answer_text(code))),
        }
    }
}

/// The body of the answer, and what it says.
fn opened(
    asked: &Asked,
    result: Result<Response, PeerError>,
) -> Result<(Bytes, Response), ErrorCode> {
    let Ok(Response::Envelope(EnvelopeResponse {
        response_data,
        error_code,
    })) = result
    else {
        return Err(code_of(&result));
    };
    match error_code {
        ErrorCode::NONE => {}
        ErrorCode::UNSUPPORTED_VERSION => return Err(ErrorCode::UNSUPPORTED_VERSION),
        // The client did nothing wrong, so it is not told what this broker did.
        _ => return Err(ErrorCode::UNKNOWN_SERVER_ERROR),
    }
    let (api_key, version) = (asked.api_key, asked.version);
    let body = open_answer(api_key, version, asked.correlation_id, response_data);
    let body = body.ok_or(ErrorCode::UNKNOWN_SERVER_ERROR)?;
    let response = Response::decode(api_key, version, &body);
    let response = response.map_err(|_| ErrorCode::UNKNOWN_SERVER_ERROR)?;
    Ok((body, response))
}

fn opened_create_topics(
    response: EnvelopeResponse,
) -> Result<highwater_protocol::messages::CreateTopicsResponse, ErrorCode> {
    if response.error_code.is_error() {
        return Err(response.error_code);
    }
    let api_key = ApiKey::CreateTopics;
    let body = open_answer(api_key, CREATE_TOPICS, 0, response.response_data);
    let decoded = body.map(|body| Response::decode(api_key, CREATE_TOPICS, &body));
    match decoded {
        Some(Ok(Response::CreateTopics(response))) => Ok(response),
        _ => Err(ErrorCode::UNKNOWN_SERVER_ERROR),
    }
}

/// What is told when the controller said nothing that makes sense.
const fn code_of(result: &Result<Response, PeerError>) -> ErrorCode {
    match result {
        Ok(_) | Err(PeerError::Malformed | PeerError::Unsupported) => {
            ErrorCode::UNKNOWN_SERVER_ERROR
        }
        Err(PeerError::Disconnected | PeerError::TimedOut) => ErrorCode::REQUEST_TIMED_OUT,
    }
}

/// An error in the form of the request's answer.
fn refused(asked: &Asked, code: ErrorCode) -> Option<Response> {
    let mut body = asked.frame.clone();
    RequestHeader::decode(&mut body).ok()?;
    let text = no_answer_text(code);
    match Request::decode(asked.api_key, asked.version, body).ok()? {
        Request::CreateTopics(request) => {
            let mut response = convert::refused_topics(&request, code);
            for topic in &mut response.topics {
                topic.error_message = Some(text.clone());
            }
            Some(response.into())
        }
        Request::DeleteTopics(request) => {
            let mut response = convert::refused_deletions(&request, code);
            for topic in &mut response.responses {
                topic.error_message = Some(text.clone());
            }
            Some(response.into())
        }
        Request::DescribeQuorum(_) => {
            let response = DescribeQuorumResponse {
                error_code: code,
                error_message: Some(text),
                ..DescribeQuorumResponse::default()
            };
            Some(response.into())
        }
        _ => None,
    }
}

fn no_answer_text(code: ErrorCode) -> String {
    match code {
        ErrorCode::REQUEST_TIMED_OUT => {
            "The controller did not answer in time; the change may still be made.".to_owned()
        }
        code => format!("The controller did not answer as expected: {code}."),
    }
}
