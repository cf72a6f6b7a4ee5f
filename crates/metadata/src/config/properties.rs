/// One line of a `.properties` text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// The line where it begins, from 1; zero when it came from a command line.
    pub line: usize,
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
}

/// A `.properties` text that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct PropertiesError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub why: &'static str,
}

/// Reads Java's `.properties` format: `#` and `!` comments, `=`, `:` or white space between key
/// and value, a backslash at the end of a line to go on, and backslash escapes.
///
/// # Errors
/// On an escape that means nothing.
pub fn parse_properties(text: &str) -> Result<Vec<Property>, PropertiesError> {
    let mut properties = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((at, first)) = lines.next() {
        let line = at + 1;
        let first = first.trim_start_matches([' ', '\t', '\u{c}']);
        if first.is_empty() || first.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = first.to_owned();
        while goes_on(&logical) {
            logical.pop();
            let Some((_, next)) = lines.next() else { break };
            logical.push_str(next.trim_start_matches([' ', '\t', '\u{c}']));
        }
        let (key, value) = split_key(&logical);
        let unescaped = |text| unescape(text).map_err(|why| PropertiesError { line, why });
        properties.push(Property {
            line,
            key: unescaped(key)?,
            value: unescaped(value)?,
        });
    }
    Ok(properties)
}

/// Whether a line ends in an odd number of backslashes.
fn goes_on(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// Cuts at the first separator that is not escaped.
fn split_key(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let separator = line.find(|c: char| {
        let found = !escaped && matches!(c, '=' | ':' | ' ' | '\t' | '\u{c}');
        escaped = c == '\\' && !escaped;
        found
    });
    let Some(separator) = separator else {
        return (line, "");
    };
    let (key, rest) = line.split_at(separator);
    let rest = rest.trim_start_matches([' ', '\t', '\u{c}']);
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (
        key,
        rest.trim_start_matches([' ', '\t', '\u{c}']).trim_end(),
    )
}

fn unescape(text: &str) -> Result<String, &'static str> {
    if !text.contains('\\') {
        return Ok(text.to_owned());
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            Some('t') => plain.push('\t'),
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some('f') => plain.push('\u{c}'),
            Some('u') => {
                let digits: String = chars.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16)
                    .ok()
                    .filter(|_| digits.len() == 4);
                let c = code.and_then(char::from_u32);
                plain.push(c.ok_or("\\u needs four hexadecimal digits of a character")?);
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_java_reads() {
        let text = "# comment\n! too\n\nnode.id=1\n log.dirs : /a,\\\n   /b\n\
                    key value with blanks \n\
                    a\\=b=c\nempty=\nbare\nu=\\u0041\\t.\nlisteners=PLAINTEXT://:9092\n";
        let read = parse_properties(text).expect("well formed");
        let read: Vec<_> = read
            .iter()
            .map(|it| (it.line, it.key.as_str(), it.value.as_str()))
            .collect();
        assert_eq!(
            read,
            [
                (4, "node.id", "1"),
                (5, "log.dirs", "/a,/b"),
                (7, "key", "value with blanks"),
                (8, "a=b", "c"),
                (9, "empty", ""),
                (10, "bare", ""),
                (11, "u", "A\t."),
                (12, "listeners", "PLAINTEXT://:9092"),
            ]
        );
    }

    #[test]
    fn errors_name_the_line() {
        let error = parse_properties("a=1\nb=\\u12\n").expect_err("malformed");
        assert_eq!(error.line, 2);
        assert!(error.to_string().starts_with("line 2: "));
    }
}
