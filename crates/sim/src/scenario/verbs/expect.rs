//! `expect violation`: what a story lets go wrong.

use super::{Command, ScriptError};
use crate::world::World;

/// `expect violation I-05 I-16`: from now on these invariants may break, each of them does before
/// the story ends, and the trace tells how.
pub(super) fn expect(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    match command.words.split_first() {
        Some((what, ids)) if what == "violation" && !ids.is_empty() => {
            for id in ids {
                world.checker.verdicts.expect(id);
            }
            Ok(())
        }
        _ => Err(ScriptError("expect: 'violation', and which ones".into())),
    }
}

/// At the end of a story: everything that was expected to go wrong did.
pub(crate) fn check(world: &World) -> Result<(), ScriptError> {
    match world.checker.verdicts.unmet().as_slice() {
        [] => Ok(()),
        unmet => {
            let unmet = unmet.join(", ");
            Err(ScriptError(format!("expected to break, but held: {unmet}")))
        }
    }
}
