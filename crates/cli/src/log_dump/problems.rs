use std::collections::BTreeMap;

use super::fields::Printer;

/// What does not fit together in the dumped files, printed after them as Kafka does.
#[derive(Debug, Default)]
pub(super) struct Problems {
    found: BTreeMap<(Kind, String), Vec<(i64, i64)>>,
}

/// The kinds of problems, in the order in which they are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// An index entry names another offset than the batch at its position.
    Mismatch,
    /// A time index entry has another timestamp than its batch.
    Timestamp,
    /// A time index entry is not above the one before.
    OutOfOrder,
    /// A time index entry names an offset that ends no batch.
    NotFound,
    /// An offset of a log does not follow the one before.
    NonConsecutive,
}

impl Problems {
    /// Notes one problem of `file`.
    pub(super) fn add(&mut self, kind: Kind, file: &str, pair: (i64, i64)) {
        self.found
            .entry((kind, file.to_owned()))
            .or_default()
            .push(pair);
    }

    /// Prints all of them.
    pub(super) fn print(&self, printer: &mut Printer<'_>) -> anyhow::Result<()> {
        for ((kind, file), pairs) in &self.found {
            let mut lines = vec![kind.title(file)];
            lines.extend(pairs.iter().map(|&pair| kind.line(pair)));
            printer.problem(file, kind.name(), &lines, pairs)?;
        }
        Ok(())
    }
}

impl Kind {
    fn title(self, file: &str) -> String {
        match self {
            Self::Mismatch => format!("Mismatches in :{file}"),
            Self::Timestamp => format!("Found timestamp mismatch in :{file}"),
            Self::OutOfOrder => format!("Found out of order timestamp in :{file}"),
            Self::NotFound => format!("The following indexed offsets are not found in :{file}"),
            Self::NonConsecutive => format!("Non-consecutive offsets in {file}"),
        }
    }

    fn line(self, (a, b): (i64, i64)) -> String {
        match self {
            Self::Mismatch => format!("  Index offset: {a}, log offset: {b}"),
            Self::Timestamp => format!("  Index timestamp: {a}, log timestamp: {b}"),
            Self::OutOfOrder => {
                format!("  Index timestamp: {a}, Previously indexed timestamp: {b}")
            }
            Self::NotFound => format!("Indexed offset: {a}, found log offset: {b}"),
            Self::NonConsecutive => format!("  {a} is followed by {b}"),
        }
    }

    /// The name in JSON.
    const fn name(self) -> &'static str {
        match self {
            Self::Mismatch => "indexMismatch",
            Self::Timestamp => "timestampMismatch",
            Self::OutOfOrder => "timestampOutOfOrder",
            Self::NotFound => "indexedOffsetNotFound",
            Self::NonConsecutive => "nonConsecutiveOffsets",
        }
    }
}
