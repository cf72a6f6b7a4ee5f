use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufWriter, StdoutLock, Write};

use serde_json::{Map, Value};

use crate::args::Output;

/// The user called a command in a way that cannot be meant: exit code 2.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// One clear line on standard error.
pub(crate) fn complain(text: &str) {
    let line = text.replace('\n', " ");
    // Nobody is left to tell when standard error is closed.
    let _gone = writeln!(io::stderr(), "highwater: {line}");
}

/// Standard output, for results.
pub(crate) fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}

/// Rows with named columns: a plain table, or a JSON array of objects.
#[derive(Debug)]
pub(crate) struct Table {
    columns: &'static [&'static str],
    rows: Vec<Vec<Value>>,
    /// What is said of a row behind its last column, by its number.
    notes: BTreeMap<usize, String>,
}

impl Table {
    /// A table without rows.
    pub(crate) const fn new(columns: &'static [&'static str]) -> Self {
        Self {
            columns,
            rows: Vec::new(),
            notes: BTreeMap::new(),
        }
    }

    /// Adds a row: one value per column. Null prints as nothing.
    pub(crate) fn push(&mut self, row: Vec<Value>) {
        assert_eq!(
            row.len(),
            self.columns.len(),
            "a row has a value for each column"
        );
        self.rows.push(row);
    }

    /// Adds a row that something is said of: in text behind the last value, in JSON as `note`.
    pub(crate) fn push_noted(&mut self, row: Vec<Value>, note: Option<String>) {
        self.push(row);
        if let Some(note) = note {
            self.notes.insert(self.rows.len() - 1, note);
        }
    }

    /// The rows as a JSON array of objects.
    pub(crate) fn to_json(&self) -> Value {
        let object = |(at, row): (usize, &Vec<Value>)| {
            let names = self.columns.iter().map(|name| name.replace('-', "_"));
            let mut object: Map<_, _> = names.zip(row.iter().cloned()).collect();
            if let Some(note) = self.notes.get(&at) {
                object.insert("note".to_owned(), Value::from(note.as_str()));
            }
            Value::Object(object)
        };
        self.rows.iter().enumerate().map(object).collect()
    }

    /// Prints the table.
    pub(crate) fn print(&self, output: Output) -> anyhow::Result<()> {
        let mut out = stdout();
        match output {
            Output::Json => writeln!(out, "{}", self.to_json())?,
            Output::Table => self.write_text(&mut out)?,
        }
        out.flush()?;
        Ok(())
    }

    /// Columns side by side, two spaces between them, no space at the end of a line.
    pub(crate) fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        let header: Vec<String> = self.columns.iter().map(|&name| name.to_owned()).collect();
        let mut rows: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| row.iter().map(text).collect())
            .collect();
        for (at, note) in &self.notes {
            if let Some(last) = rows.get_mut(*at).and_then(|row| row.last_mut()) {
                let comma = if last.is_empty() { "" } else { ", " };
                last.push_str(&format!("{comma}{note}"));
            }
        }
        let all = || std::iter::once(&header).chain(&rows);
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|at| {
                all()
                    .filter_map(|row| row.get(at))
                    .map(|it| it.chars().count())
                    .max()
            })
            .map(Option::unwrap_or_default)
            .collect();
        for row in all() {
            let mut line = String::new();
            for (cell, &width) in row.iter().zip(&widths) {
                line.push_str(&format!("{cell:width$}  "));
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_lines_up_and_has_no_space_at_line_ends() {
        let mut table = Table::new(&["topic-partition", "leo", "isr"]);
        table.push(vec![json!("orders-0"), json!(5121), json!([1, 2])]);
        table.push(vec![json!("t-1"), json!(7), Value::Null]);
        let mut out = Vec::new();
        table.write_text(&mut out).expect("memory");
        let text = String::from_utf8(out).expect("text");
        assert_eq!(
            text,
            "topic-partition  leo   isr\norders-0         5121  1,2\nt-1              7\n"
        );
        assert_eq!(
            table.to_json(),
            json!([
                { "topic_partition": "orders-0", "leo": 5121, "isr": [1, 2] },
                { "topic_partition": "t-1", "leo": 7, "isr": null },
            ])
        );
    }

    #[test]
    fn a_note_stands_behind_the_last_value() {
        let mut table = Table::new(&["broker", "lag"]);
        table.push_noted(vec![json!(1), Value::Null], None);
        table.push_noted(
            vec![json!(2), json!(321)],
            Some("does not answer".to_owned()),
        );
        table.push_noted(vec![json!(3), Value::Null], Some("is down".to_owned()));
        let mut out = Vec::new();
        table.write_text(&mut out).expect("memory");
        let text = String::from_utf8(out).expect("text");
        let expected = "broker  lag\n1\n2       321, does not answer\n3       is down\n";
        assert_eq!(text, expected);
        assert_eq!(
            table.to_json(),
            json!([
                { "broker": 1, "lag": null },
                { "broker": 2, "lag": 321, "note": "does not answer" },
                { "broker": 3, "lag": null, "note": "is down" },
            ])
        );
    }
}
