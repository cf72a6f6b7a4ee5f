use std::io::Write;

use serde_json::{Map, Value, json};

/// One line of a dump: named values, as `name: value name: value` or as a JSON object.
#[derive(Debug, Default)]
pub(super) struct Fields {
    text: String,
    json: Map<String, Value>,
}

impl Fields {
    /// Adds a value that prints as itself.
    pub(super) fn put(&mut self, name: &str, value: impl Into<Value>) -> &mut Self {
        let value = value.into();
        let text = match &value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        self.put_as(name, &text, value)
    }

    /// Adds a value that Kafka prints as `text`.
    pub(super) fn put_as(&mut self, name: &str, text: &str, value: Value) -> &mut Self {
        self.put_raw(&format!("{name}: {text}"), name, value)
    }

    /// Adds a value with its text, name included.
    pub(super) fn put_raw(&mut self, text: &str, name: &str, value: Value) -> &mut Self {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(text);
        self.json.insert(name.to_owned(), value);
        self
    }
}

/// Writes the lines of a dump.
pub(super) struct Printer<'a> {
    out: &'a mut dyn Write,
    json: bool,
    file: String,
}

impl<'a> Printer<'a> {
    pub(super) fn new(out: &'a mut dyn Write, json: bool) -> Self {
        Self {
            out,
            json,
            file: String::new(),
        }
    }

    /// Begins a file.
    pub(super) fn file(&mut self, name: &str) -> anyhow::Result<()> {
        name.clone_into(&mut self.file);
        if !self.json {
            writeln!(self.out, "Dumping {name}")?;
        }
        Ok(())
    }

    /// A fact about the whole file.
    pub(super) fn note(&mut self, text: &str, name: &str, value: i64) -> anyhow::Result<()> {
        if self.json {
            let line = json!({ "file": self.file, "kind": "file", name: value });
            writeln!(self.out, "{line}")?;
        } else {
            writeln!(self.out, "{text}")?;
        }
        Ok(())
    }

    /// One entry of a file. `mark` stands before it in text.
    pub(super) fn entry(&mut self, kind: &str, mark: &str, fields: Fields) -> anyhow::Result<()> {
        if self.json {
            let mut line = Map::new();
            line.insert("file".to_owned(), self.file.clone().into());
            line.insert("kind".to_owned(), kind.into());
            line.extend(fields.json);
            writeln!(self.out, "{}", Value::Object(line))?;
        } else {
            writeln!(self.out, "{mark}{}", fields.text)?;
        }
        Ok(())
    }

    /// What does not fit together: `lines` of text, or the same as JSON.
    pub(super) fn problem(
        &mut self,
        file: &str,
        what: &str,
        lines: &[String],
        pairs: &[(i64, i64)],
    ) -> anyhow::Result<()> {
        if self.json {
            let pairs: Vec<Value> = pairs.iter().map(|&(a, b)| json!([a, b])).collect();
            let line = json!({ "file": file, "kind": "problem", "what": what, "pairs": pairs });
            writeln!(self.out, "{line}")?;
        } else {
            for line in lines {
                writeln!(self.out, "{line}")?;
            }
        }
        Ok(())
    }
}
