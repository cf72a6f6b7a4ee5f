use std::collections::BTreeMap;

use bytes::Bytes;
use highwater_disk::Disk;
use highwater_metadata::MetadataImage;
use highwater_protocol::{Request, Response};
use highwater_types::{Millis, Mono, Now, TopicId};

use crate::machine::{Answer, Effect, Ticket};
use crate::shard::lifecycle::ToApply;
use crate::shard::{Effects, Shard};

/// How long an answer is held back until this broker's metadata knows what it says.
const CATCH_UP_MAX: Millis = Millis::new(1_000);

/// What this broker's metadata have to know before a client is told of it.
#[derive(Debug)]
pub(super) enum Awaited {
    /// Nothing changes.
    Nothing,
    /// Topics are there.
    Made,
    /// Topics are gone: those that were there by these names.
    Gone(BTreeMap<String, TopicId>),
}

/// An answer that waits until the metadata of this broker has caught up with it, so that a client
/// that acts on it at once is not told the contrary.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) ticket: Ticket,
    body: Bytes,
    pub(super) deadline: Mono,
    topics: Topics,
}

#[derive(Debug)]
enum Topics {
    Made(Vec<String>),
    Gone(Vec<TopicId>),
}

impl Awaited {
    pub(super) fn of(request: &Request, image: &MetadataImage) -> Self {
        match request {
            Request::CreateTopics(request) if !request.validate_only => Self::Made,
            Request::DeleteTopics(request) => {
                let listed = request.topics.iter().filter_map(|it| it.name.as_ref());
                let names = request.topic_names.iter().chain(listed);
                let known = names.filter_map(|name| {
                    let topic = image.topic_by_name(name)?;
                    Some((name.clone(), topic.id))
                });
                Self::Gone(known.collect())
            }
            _ => Self::Nothing,
        }
    }

    /// The topics of an answer that are to be waited for.
    fn topics(self, response: &Response) -> Option<Topics> {
        match (self, response) {
            (Self::Made, Response::CreateTopics(response)) => {
                let topics = response.topics.iter();
                let made = topics.filter(|it| !it.error_code.is_error());
                Some(Topics::Made(made.map(|it| it.name.clone()).collect()))
            }
            (Self::Gone(known), Response::DeleteTopics(response)) => {
                let topics = response.responses.iter();
                let gone = topics.filter(|it| !it.error_code.is_error());
                // Old versions tell no ids.
                let ids = gone.filter_map(|it| {
                    let told = TopicId::new(it.topic_id);
                    let known = it.name.as_ref().and_then(|name| known.get(name));
                    if told.is_zero() {
                        known.copied()
                    } else {
                        Some(told)
                    }
                });
                Some(Topics::Gone(ids.collect()))
            }
            _ => None,
        }
    }
}

impl Topics {
    fn are_caught_up(&self, image: &MetadataImage, to_apply: &ToApply) -> bool {
        match self {
            Self::Made(names) => names.iter().all(|name| {
                let topic = image.topic_by_name(name);
                topic.is_some_and(|topic| !to_apply.contains(topic.id))
            }),
            Self::Gone(ids) => {
                let gone = |id: &TopicId| image.topic(*id).is_none() && !to_apply.contains(*id);
                ids.iter().all(gone)
            }
        }
    }
}

impl<D: Disk> Shard<D> {
    /// Gives an answer once this broker's metadata know what it says.
    pub(super) fn give_or_hold(
        &mut self,
        now: Now,
        ticket: Ticket,
        body: Bytes,
        (awaited, response): (Awaited, &Response),
        out: &mut Effects<D>,
    ) {
        let topics = awaited.topics(response);
        let (image, to_apply) = (&self.image, &self.lifecycle.to_apply);
        match topics {
            Some(topics) if !topics.are_caught_up(image, to_apply) => {
                self.serve.forwarding.held.push(Held {
                    ticket,
                    body,
                    deadline: now.mono.plus(CATCH_UP_MAX),
                    topics,
                });
            }
            _ => {
                let answer = Answer::bytes(body);
                out.push(Effect::Answer { ticket, answer });
            }
        }
    }

    /// Gives the answers whose time has come: the metadata has caught up, or never mind.
    pub(super) fn give_held_answers(&mut self, now: Now, out: &mut Effects<D>) {
        let (image, to_apply) = (&self.image, &self.lifecycle.to_apply);
        self.serve.forwarding.held.retain(|held| {
            let caught_up = held.topics.are_caught_up(image, to_apply);
            let give = caught_up || held.deadline <= now.mono;
            if give {
                let answer = Answer::bytes(held.body.clone());
                out.push(Effect::Answer {
                    ticket: held.ticket,
                    answer,
                });
            }
            !give
        });
    }
}
