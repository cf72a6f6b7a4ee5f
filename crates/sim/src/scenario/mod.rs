//! Scenario files: stories that are played against real nodes, and whose trace is the expectation.

mod parse;
mod verbs;

use std::fmt::Write as _;

use self::parse::Script;
pub use self::parse::ScriptError;
use crate::trace::Trace;
use crate::world::{Delays, World};

/// What came of a scenario.
#[derive(Debug)]
pub struct Played {
    /// The file's text as it would be recorded now.
    pub recorded: String,
    /// Whether that is what the file says.
    pub matches: bool,
    /// Everything that happened.
    pub trace: Trace,
}

/// The world at the end of a story whose trace is of no interest.
#[cfg(test)]
pub(crate) fn world_after(text: &str) -> World {
    let script = Script::parse(text).expect("a story");
    let mut world = World::new(1, Delays::STEADY);
    for command in script.blocks.iter().flat_map(|block| &block.commands) {
        verbs::perform(&mut world, command).expect("a line that can be done");
    }
    world
}

/// Plays a scenario. Its seed is fixed: what a file tells is always the same story.
///
/// # Errors
/// When a line cannot be understood or done.
///
/// # Panics
/// When an invariant breaks: that is a mistake of the node.
pub fn play(text: &str) -> Result<Played, ScriptError> {
    play_told(text, |_| ())
}

/// As [`play`], and hands each line of the trace to `tell` as it happens: for stories that do not
/// come to their end.
///
/// # Errors
/// As there.
///
/// # Panics
/// As there.
pub fn play_told(text: &str, tell: impl FnMut(&str) + 'static) -> Result<Played, ScriptError> {
    let mut script = Script::parse(text)?;
    let mut world = World::new(1, Delays::STEADY);
    world.trace = Trace::told_to(tell);
    for block in &mut script.blocks {
        for command in &block.commands {
            let done = verbs::perform(&mut world, command);
            done.map_err(|why| why.in_line(command.line))?;
        }
        block.expected = world.trace.take_new().to_vec();
    }
    verbs::expect::check(&world)?;
    let mut recorded = String::new();
    write!(recorded, "{script}").expect("writing to memory");
    Ok(Played {
        matches: recorded == text,
        recorded,
        trace: world.trace,
    })
}
