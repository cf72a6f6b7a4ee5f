use std::collections::BTreeSet;
use std::sync::Arc;

use highwater_types::TopicName;

use crate::record::Record;

/// Texts that many committed offsets have in common, so that they share their memory.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    topics: BTreeSet<TopicName>,
    empty: Arc<str>,
}

impl Pool {
    /// The name as all others of this coordinator have it.
    pub(crate) fn topic(&mut self, name: &TopicName) -> TopicName {
        if let Some(known) = self.topics.get(name) {
            return known.clone();
        }
        self.topics.insert(name.clone());
        name.clone()
    }

    /// The text, which nearly always is the empty one.
    pub(crate) fn metadata(&self, text: &Arc<str>) -> Arc<str> {
        if text.is_empty() {
            Arc::clone(&self.empty)
        } else {
            Arc::clone(text)
        }
    }

    /// The record with shared texts.
    pub(crate) fn share(&mut self, record: &mut Record) {
        if let Record::Offset { topic, commit, .. } = record {
            *topic = self.topic(topic);
            if let Some(commit) = commit {
                commit.metadata = self.metadata(&commit.metadata);
            }
        }
    }

    /// Forgets every name but those that are still in use.
    pub(crate) fn retain<'a>(&mut self, used: impl Iterator<Item = &'a TopicName>) {
        self.topics.clear();
        for name in used {
            if !self.topics.contains(name) {
                self.topics.insert(name.clone());
            }
        }
    }
}
