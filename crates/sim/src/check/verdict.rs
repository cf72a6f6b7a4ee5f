//! What happens when an invariant is broken: a panic with its name, unless a story expects it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

/// The invariants that a story lets break, and what there is to tell.
#[derive(Debug, Default)]
pub(crate) struct Verdicts {
    /// By id: whether it was broken since.
    expected: BTreeMap<String, bool>,
    /// What was told already: a broken log stays broken, and once is enough.
    told: BTreeSet<(String, String)>,
    news: Vec<String>,
}

impl Verdicts {
    /// From now on this invariant may break: that is told, and nobody panics.
    pub(crate) fn expect(&mut self, id: &str) {
        self.expected.insert(id.to_owned(), false);
        self.told.retain(|(told, _)| told != id);
    }

    /// Invariants that were expected to break and did not, since they were last expected.
    pub(crate) fn unmet(&self) -> Vec<&str> {
        let unmet = self.expected.iter().filter(|(_, broke)| !**broke);
        unmet.map(|(id, _)| id.as_str()).collect()
    }

    /// An invariant is broken.
    ///
    /// # Panics
    /// When nobody expects that.
    #[track_caller]
    pub(super) fn broken(&mut self, id: &str, whose: impl Display, why: impl Display) {
        let Some(broke) = self.expected.get_mut(id) else {
            panic!("{id} {whose}: {why}");
        };
        *broke = true;
        let whose = whose.to_string();
        if self.told.insert((id.to_owned(), whose.clone())) {
            self.news.push(format!("checker: {id} {whose}: {why}"));
        }
    }

    /// Something that is not wrong but worth telling.
    pub(super) fn tell(&mut self, line: String) {
        self.news.push(line);
    }

    /// What there is to tell since the last call.
    pub(crate) fn take_news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_expected_is_told_once_and_what_is_not_panics() {
        let mut verdicts = Verdicts::default();
        verdicts.expect("I-01");
        assert_eq!(verdicts.unmet(), ["I-01"]);
        verdicts.broken("I-01", "orders-0", "they part");
        verdicts.broken("I-01", "orders-0", "they part still");
        assert_eq!(verdicts.unmet(), Vec::<&str>::new());
        assert_eq!(verdicts.take_news(), ["checker: I-01 orders-0: they part"]);
        let other = std::panic::catch_unwind(move || verdicts.broken("I-02", "orders-0", "no"));
        assert!(other.is_err());
    }
}
