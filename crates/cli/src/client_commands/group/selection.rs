use std::collections::{BTreeMap, BTreeSet};

use highwater_types::TopicName;

use crate::output::Usage;

/// Topics, each with the partitions that are meant; none: all.
pub(super) type Selection = BTreeMap<TopicName, BTreeSet<i32>>;

/// Reads `TOPIC` and `TOPIC:N,N...`.
pub(super) fn parse(texts: &[String]) -> anyhow::Result<Selection> {
    let mut selection = Selection::new();
    for text in texts {
        let usage = |why: &str| Usage(format!("--topic {text}: {why}"));
        let (name, numbers) = match text.split_once(':') {
            Some((name, numbers)) => (name, Some(numbers)),
            None => (text.as_str(), None),
        };
        let name = TopicName::new(name).map_err(|why| usage(&why.to_string()))?;
        let Some(numbers) = numbers else {
            selection.insert(name, BTreeSet::new());
            continue;
        };
        let number = |text: &str| text.trim().parse().ok().filter(|it: &i32| *it >= 0);
        let numbers: Option<BTreeSet<i32>> = numbers.split(',').map(number).collect();
        let numbers = numbers.ok_or_else(|| usage("partitions are numbers from 0, as in t:0,1"))?;
        match selection.get_mut(&name) {
            // The whole topic is named already.
            Some(known) if known.is_empty() => {}
            Some(known) => known.extend(numbers),
            None => {
                selection.insert(name, numbers);
            }
        }
    }
    Ok(selection)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(texts: &[&str]) -> Result<Vec<(String, Vec<i32>)>, String> {
        let texts: Vec<String> = texts.iter().map(|&it| it.to_owned()).collect();
        let selection = parse(&texts).map_err(|why| why.to_string())?;
        let topics = selection.into_iter();
        Ok(topics
            .map(|(name, numbers)| (name.to_string(), numbers.into_iter().collect()))
            .collect())
    }

    #[test]
    fn topics_and_partitions_are_named_as_kafkas_tool_does() {
        let expected = vec![("a".to_owned(), vec![0, 2, 5]), ("b".to_owned(), vec![])];
        assert_eq!(parsed(&["a:2,0", "b", "a:5"]), Ok(expected));
        assert_eq!(parsed(&["b", "b:1"]), Ok(vec![("b".to_owned(), vec![])]));
        for wrong in ["a:", "a:x", "a:-1", "a/b", ""] {
            assert!(parsed(&[wrong]).is_err(), "{wrong}");
        }
    }
}
