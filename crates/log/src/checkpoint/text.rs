use highwater_types::Offset;

/// Why the bytes of a small file mean nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// Not UTF-8, or with NUL bytes: most likely blocks that never reached the disk.
    #[error("it is not text")]
    NotText,
    /// The file has no bytes, and should have some.
    #[error("it is empty")]
    Empty,
    /// A version that this build does not know.
    #[error("it has version '{found}', {expected} is expected")]
    Version {
        /// The first line, or the version field.
        found: String,
        /// The version that is understood.
        expected: i32,
    },
    /// Fewer or more lines than the count says.
    #[error("it has {found} entries where its second line says {count}")]
    Count {
        /// What the second line says.
        count: u64,
        /// How many lines follow.
        found: u64,
    },
    /// A line is not of the expected form.
    #[error("line {line} is not understood: '{text}'")]
    Line {
        /// Counted from 1.
        line: usize,
        /// The line, cut to 80 characters.
        text: String,
    },
    /// A needed key is missing.
    #[error("it has no '{key}'")]
    Missing {
        /// The key.
        key: &'static str,
    },
    /// A key has a value of the wrong form.
    #[error("'{key}' has the value '{value}', which is not understood")]
    Value {
        /// The key.
        key: &'static str,
        /// The value, cut to 80 characters.
        value: String,
    },
    /// The entries contradict each other.
    #[error("its entries contradict each other")]
    Order,
}

/// The lines after version and count of Kafka's common checkpoint form (`0\n<count>\n<lines>`),
/// with their numbers. An empty file has none: Kafka leaves them so before the first write.
pub(super) fn lines(bytes: &[u8]) -> Result<Vec<(usize, &str)>, CheckpointError> {
    let text = text(bytes)?;
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let mut lines = text
        .lines()
        .zip(1_usize..)
        .map(|(line, number)| (number, line));
    let version = lines.next().map_or("", |(_, line)| line);
    if version.trim() != "0" {
        return Err(CheckpointError::Version {
            found: clip(version),
            expected: 0,
        });
    }
    let (number, count) = lines.next().unwrap_or((2, ""));
    let count: u64 = count.trim().parse().map_err(|_| bad_line(number, count))?;
    let entries: Vec<(usize, &str)> = lines.filter(|(_, line)| !line.trim().is_empty()).collect();
    let found = u64::try_from(entries.len()).unwrap_or(u64::MAX);
    if found != count {
        return Err(CheckpointError::Count { count, found });
    }
    Ok(entries)
}

/// The bytes of a checkpoint in the common form.
pub(super) fn file(lines: impl ExactSizeIterator<Item = String>) -> Vec<u8> {
    let mut text = format!("0\n{}\n", lines.len());
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    text.into_bytes()
}

/// The bytes as text without NULs.
pub(super) fn text(bytes: &[u8]) -> Result<&str, CheckpointError> {
    let text = std::str::from_utf8(bytes).map_err(|_| CheckpointError::NotText)?;
    if text.contains('\0') {
        return Err(CheckpointError::NotText);
    }
    Ok(text)
}

pub(super) fn bad_line(line: usize, text: &str) -> CheckpointError {
    CheckpointError::Line {
        line,
        text: clip(text),
    }
}

pub(super) fn clip(text: &str) -> String {
    text.chars().take(80).collect()
}

/// An offset that is written in digits and not negative.
pub(super) fn offset(text: &str) -> Option<Offset> {
    text.parse().ok().filter(|raw| *raw >= 0).map(Offset::new)
}
