//! The text of a scenario file: a story, then commands with what they bring about.

use std::collections::BTreeMap;
use std::fmt;

/// A scenario as it stands in its file.
#[derive(Debug)]
pub(crate) struct Script {
    /// The comment at the top.
    pub(crate) header: Vec<String>,
    /// The blocks in order.
    pub(crate) blocks: Vec<Block>,
}

/// Some commands, and the trace that they are expected to leave.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// Comment and command lines as written.
    pub(crate) source: Vec<String>,
    /// The commands.
    pub(crate) commands: Vec<Command>,
    /// The lines below `----`.
    pub(crate) expected: Vec<String>,
}

/// One line: a verb, words, and `key=value` settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Command {
    /// The line of the file, from 1.
    pub(crate) line: usize,
    /// The first word.
    pub(crate) verb: String,
    /// The other words.
    pub(crate) words: Vec<String>,
    /// The settings.
    pub(crate) settings: BTreeMap<String, String>,
}

/// Why a line cannot be understood or done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScriptError(pub String);

impl ScriptError {
    /// Says which line of the file, from 1, it is about.
    pub(crate) fn in_line(self, line: usize) -> Self {
        Self(format!("line {line}: {}", self.0))
    }
}

impl Script {
    /// Reads a scenario file.
    pub(crate) fn parse(text: &str) -> Result<Self, ScriptError> {
        let mut lines = (1..).zip(text.lines()).peekable();
        let mut header = Vec::new();
        while let Some((_, line)) = lines.next_if(|(_, line)| line.starts_with('#')) {
            header.push(line.to_owned());
        }
        if header.is_empty() {
            return Err(ScriptError(
                "a scenario begins with a comment: its story".into(),
            ));
        }
        let mut blocks = Vec::new();
        let mut block = Block::default();
        let mut in_output = false;
        for (number, line) in lines {
            match (in_output, line) {
                (true, "") => {
                    blocks.push(std::mem::take(&mut block));
                    in_output = false;
                }
                (true, output) => block.expected.push(output.to_owned()),
                (false, "----") => in_output = true,
                (false, "") => {}
                (false, source) => {
                    block.source.push(source.to_owned());
                    if !source.starts_with('#') {
                        let command = Command::parse(number, source);
                        block
                            .commands
                            .push(command.map_err(|why| why.in_line(number))?);
                    }
                }
            }
        }
        if !block.source.is_empty() {
            blocks.push(block);
        }
        Ok(Self { header, blocks })
    }
}

impl Command {
    fn parse(number: usize, line: &str) -> Result<Self, ScriptError> {
        let mut words = line.split_whitespace();
        let verb = words.next().unwrap_or_default().to_owned();
        let mut command = Self {
            line: number,
            verb,
            ..Self::default()
        };
        for word in words {
            match word.split_once('=') {
                Some((key, value)) => {
                    let double = command.settings.insert(key.to_owned(), value.to_owned());
                    if double.is_some() {
                        return Err(ScriptError(format!(
                            "{}: '{key}' is given twice",
                            command.verb
                        )));
                    }
                }
                None => command.words.push(word.to_owned()),
            }
        }
        Ok(command)
    }

    /// The word at `at`, named `what` in the error.
    pub(crate) fn word(&self, at: usize, what: &str) -> Result<&str, ScriptError> {
        let word = self.words.get(at).map(String::as_str);
        word.ok_or_else(|| ScriptError(format!("{}: {what} is missing", self.verb)))
    }

    /// The setting `key`, or `default`.
    pub(crate) fn setting<T: std::str::FromStr>(
        &self,
        key: &str,
        default: T,
    ) -> Result<T, ScriptError> {
        match self.settings.get(key) {
            None => Ok(default),
            Some(value) => value
                .parse()
                .map_err(|_| ScriptError(format!("{}: '{key}={value}' cannot be read", self.verb))),
        }
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.header {
            writeln!(f, "{line}")?;
        }
        for (index, block) in self.blocks.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            for line in &block.source {
                writeln!(f, "{line}")?;
            }
            writeln!(f, "----")?;
            for line in &block.expected {
                writeln!(f, "{line}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A story.\nnode shards=2\n----\n1: serving\n\nadvance 30s\ntick\n----\n";

    #[test]
    fn a_file_reads_and_writes_back() {
        let script = Script::parse(TEXT).expect("parses");
        assert_eq!(script.to_string(), TEXT);
        let [first, second] = script.blocks.as_slice() else {
            panic!("two blocks")
        };
        assert_eq!(
            first.commands.first().map(|it| it.setting("shards", 1)),
            Some(Ok(2))
        );
        assert_eq!(second.commands.len(), 2);
    }

    #[test]
    fn a_story_is_required() {
        assert!(Script::parse("node\n----\n").is_err());
    }
}
