//! The part of Java's properties format that `meta.properties` needs.

use std::collections::BTreeMap;

use highwater_types::WallMs;

/// The keys and values of a properties file; of two lines with one key the later counts.
pub(super) fn parse(text: &str) -> BTreeMap<String, String> {
    let mut pairs = BTreeMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let line = line.trim_start_matches(WHITE);
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let mut whole = line.to_owned();
        while ends_with_odd_backslashes(&whole) {
            whole.pop();
            let Some(next) = lines.next() else {
                break;
            };
            whole.push_str(next.trim_start_matches(WHITE));
        }
        let (key, value) = split(&whole);
        pairs.insert(unescape(key), unescape(value));
    }
    pairs
}

/// A value as it is written: what would begin a comment or end a key gets a backslash.
pub(super) fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for (nth, c) in value.chars().enumerate() {
        match c {
            ' ' if nth > 0 => escaped.push(' '),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            ' ' | '\\' | '=' | ':' | '#' | '!' => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The time as Java's `Date` prints it: `Mon Nov 30 07:02:43 UTC 2026`.
pub(super) fn java_date(at: WallMs) -> String {
    const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let seconds = at.raw().clamp(0, 253_402_300_799_999) / 1000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (mut year, mut day) = (1970, days);
    while day >= days_of_year(year) {
        day -= days_of_year(year);
        year += 1;
    }
    let mut month = "Dec";
    for (name, days) in MONTHS.iter().zip(days_of_months(year)) {
        if day < days {
            month = name;
            break;
        }
        day -= days;
    }
    let weekday = usize::try_from(days % 7)
        .ok()
        .and_then(|it| WEEKDAYS.get(it))
        .unwrap_or(&"Thu");
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let day = day + 1;
    format!("{weekday} {month} {day:02} {hour:02}:{minute:02}:{second:02} UTC {year}")
}

const WHITE: [char; 3] = [' ', '\t', '\u{c}'];

fn ends_with_odd_backslashes(line: &str) -> bool {
    line.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1
}

/// At the first bare `=`, `:` or white space.
fn split(line: &str) -> (&str, &str) {
    let mut is_escaped = false;
    for (at, c) in line.char_indices() {
        if !is_escaped && (matches!(c, '=' | ':') || WHITE.contains(&c)) {
            let (key, rest) = line.split_at(at);
            let rest = rest.trim_start_matches(WHITE);
            let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
            return (key, rest.trim_start_matches(WHITE));
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    (line, "")
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some('t') => plain.push('\t'),
            Some('u') => {
                let code: String = chars.by_ref().take(4).collect();
                let code = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
                plain.push(code.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(c) => plain.push(c),
            None => {}
        }
    }
    plain
}

const fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

const fn days_of_year(year: i64) -> i64 {
    if is_leap(year) { 366 } else { 365 }
}

const fn days_of_months(year: i64) -> [i64; 12] {
    let february = if is_leap(year) { 29 } else { 28 };
    [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_as_java_prints_them() {
        for (ms, text) in [
            (0, "Thu Jan 01 00:00:00 UTC 1970"),
            (951_782_399_000, "Mon Feb 28 23:59:59 UTC 2000"),
            (951_868_799_999, "Tue Feb 29 23:59:59 UTC 2000"),
            (1_796_022_163_000, "Mon Nov 30 07:02:43 UTC 2026"),
            (1_798_761_599_000, "Thu Dec 31 23:59:59 UTC 2026"),
        ] {
            assert_eq!(java_date(WallMs::new(ms)), text);
        }
    }

    #[test]
    fn keys_values_comments_and_continuations() {
        let text = "# a=b\n! c\n\n a = 1\nb:2\nc 3\nd=4\\\n   5\ne\\=f=g\\\\\nuni=\\u0041\na=6";
        let pairs = parse(text);
        let pairs: Vec<(&str, &str)> = pairs
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        assert_eq!(
            pairs,
            [
                ("a", "6"),
                ("b", "2"),
                ("c", "3"),
                ("d", "45"),
                ("e=f", "g\\"),
                ("uni", "A")
            ]
        );
    }
}
