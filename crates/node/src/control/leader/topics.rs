//! Topics are made and deleted by the controller, which also asks whether their client may: the
//! brokers that it sent its request to only hand it on.

use std::collections::BTreeSet;

use highwater_disk::Disk;
use highwater_protocol::Response;
use highwater_protocol::messages::{
    create_topics_request::{CreatableTopic, CreateTopicsRequest},
    create_topics_response::{CreatableTopicResult, CreateTopicsResponse},
    delete_topics_request::{DeleteTopicState, DeleteTopicsRequest},
    delete_topics_response::DeletableTopicResult,
};
use highwater_types::{ErrorCode, Now, TopicId, Uuid};
use rand_chacha::rand_core::RngCore as _;

use super::{Leader, convert};
use crate::authorizer::{Operation, Resource};
use crate::machine::Caller;

impl<D: Disk> Leader<D> {
    pub(super) fn create_topics(
        &mut self,
        now: Now,
        caller: &Caller,
        mut request: CreateTopicsRequest,
    ) -> Response {
        let denied = self.take_denied_creations(caller, &mut request.topics);
        let asked = convert::create_topics(request.clone());
        let random = &mut self.random;
        let decision = self
            .controller
            .create_topics(self.latest.image(), &asked, &mut || {
                let mut bytes = [0; 16];
                random.fill_bytes(&mut bytes);
                bytes
            });
        let mut response = match self.commit_whole(now, decision) {
            Ok(outcomes) => convert::created_topics(outcomes),
            Err(code) => convert::refused_topics(&request, code),
        };
        self.hide_configs(caller, &mut response);
        response.topics.extend(denied.into_iter().map(not_allowed));
        response.into()
    }

    pub(super) fn delete_topics(
        &mut self,
        now: Now,
        caller: &Caller,
        mut request: DeleteTopicsRequest,
        version: i16,
    ) -> Response {
        // Old versions have names only; the rules are those of the newest, which has pairs.
        for name in std::mem::take(&mut request.topic_names) {
            request.topics.push(DeleteTopicState {
                name: Some(name),
                ..DeleteTopicState::default()
            });
        }
        let denied = self.take_denied_deletions(caller, &mut request.topics);
        let asked = convert::delete_topics(request);
        let decision = self.controller.delete_topics(self.latest.image(), &asked);
        let mut refused = decision.answer.clone();
        let outcomes = self.commit(now, decision).unwrap_or_else(|code| {
            for outcome in refused.iter_mut().filter(|it| it.result.is_ok()) {
                let message = None;
                outcome.result = Err(highwater_metadata::controller::Refusal { code, message });
            }
            refused
        });
        let mut response = convert::deleted_topics(outcomes, version);
        let denied = denied.into_iter();
        let denied = denied.map(|(name, topic_id)| DeletableTopicResult {
            name,
            topic_id,
            error_code: ErrorCode::TOPIC_AUTHORIZATION_FAILED,
            ..DeletableTopicResult::default()
        });
        response.responses.extend(denied);
        response.into()
    }

    /// Takes out the topics that the caller may not make; each name once.
    fn take_denied_creations(
        &self,
        caller: &Caller,
        topics: &mut Vec<CreatableTopic>,
    ) -> Vec<String> {
        let allows =
            |resource: Resource<'_>| self.authorizer.allows(caller, Operation::Create, resource);
        if allows(Resource::Cluster) {
            return Vec::new();
        }
        let mut denied = BTreeSet::new();
        topics.retain(|topic| {
            let allowed = allows(Resource::Topic(&topic.name));
            if !allowed {
                denied.insert(topic.name.clone());
            }
            allowed
        });
        denied.into_iter().collect()
    }

    /// Takes out the topics that the caller may not delete, as they are to be named to it: the
    /// name of a topic that it may not see is not told to one who knows its id.
    fn take_denied_deletions(
        &self,
        caller: &Caller,
        topics: &mut Vec<DeleteTopicState>,
    ) -> Vec<(Option<String>, Uuid)> {
        let allows =
            |operation, resource: Resource<'_>| self.authorizer.allows(caller, operation, resource);
        if allows(Operation::Delete, Resource::Cluster) {
            return Vec::new();
        }
        let image = self.latest.image();
        let mut denied = BTreeSet::new();
        topics.retain(|topic| {
            let by_id = image.topic(TopicId::new(topic.topic_id));
            let by_id = by_id.map(|topic| topic.name.as_str());
            let Some(name) = topic.name.as_deref().or(by_id) else {
                return true;
            };
            if allows(Operation::Delete, Resource::Topic(name)) {
                return true;
            }
            let described = allows(Operation::Describe, Resource::Topic(name));
            let shown = topic.name.is_some() || described;
            denied.insert((shown.then(|| name.to_owned()), topic.topic_id));
            false
        });
        denied.into_iter().collect()
    }

    /// A new topic's configs are for those only who may see them.
    fn hide_configs(&self, caller: &Caller, response: &mut CreateTopicsResponse) {
        let made = response.topics.iter_mut();
        for topic in made.filter(|topic| !topic.error_code.is_error()) {
            let resource = Resource::Topic(&topic.name);
            let operation = Operation::DescribeConfigs;
            if !self.authorizer.allows(caller, operation, resource) {
                topic.topic_config_error_code = ErrorCode::TOPIC_AUTHORIZATION_FAILED;
                topic.num_partitions = -1;
                topic.replication_factor = -1;
                topic.configs = None;
            }
        }
    }
}

fn not_allowed(name: String) -> CreatableTopicResult {
    CreatableTopicResult {
        name,
        error_code: ErrorCode::TOPIC_AUTHORIZATION_FAILED,
        configs: Some(Vec::new()),
        ..CreatableTopicResult::default()
    }
}
