use std::ffi::OsString;

const OPTION: &str = "--bootstrap";

/// Puts `--bootstrap` behind everything else, so that it may stand before the verb too: only the
/// verbs that talk to a cluster have it, and the others refuse it in their own words.
pub(crate) fn verb_first(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments = arguments.into_iter();
    let (mut kept, mut moved, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(argument) = arguments.next() {
        let text = argument.to_str().unwrap_or_default();
        if text == "--" {
            rest.push(argument);
            rest.extend(arguments.by_ref());
        } else if text == OPTION {
            moved.push(argument);
            moved.extend(arguments.next());
        } else if text
            .strip_prefix(OPTION)
            .is_some_and(|it| it.starts_with('='))
        {
            moved.push(argument);
        } else {
            kept.push(argument);
        }
    }
    kept.extend(moved);
    kept.extend(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bootstrap_goes_behind_the_verb_and_before_what_is_no_option() {
        let placed = |text: &str| {
            let placed = verb_first(text.split(' ').map(OsString::from));
            let words: Vec<_> = placed.iter().filter_map(|it| it.to_str()).collect();
            words.join(" ")
        };
        for (given, expected) in [
            (
                "hw --bootstrap h:1 topic list",
                "hw topic list --bootstrap h:1",
            ),
            (
                "hw topic --bootstrap=h:1 list",
                "hw topic list --bootstrap=h:1",
            ),
            (
                "hw topic list --bootstrap h:1",
                "hw topic list --bootstrap h:1",
            ),
            (
                "hw --bootstrap h:1 consume -- -t",
                "hw consume --bootstrap h:1 -- -t",
            ),
            ("hw consume -- --bootstrap", "hw consume -- --bootstrap"),
            ("hw topic list --bootstrap", "hw topic list --bootstrap"),
            (
                "hw topic list --bootstrapped h",
                "hw topic list --bootstrapped h",
            ),
        ] {
            assert_eq!(placed(given), expected);
        }
    }
}
