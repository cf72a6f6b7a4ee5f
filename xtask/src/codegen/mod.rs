//! Writes the generated messages.

/// Runs `cargo xtask codegen`.
pub(crate) fn run(_arguments: &[String]) -> anyhow::Result<()> {
    Ok(())
}
