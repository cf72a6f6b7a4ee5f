use crate::args::{Output, SimArgs};

/// `sim`: plays scenarios and random seeds.
pub(crate) fn run(args: SimArgs, output: Output) -> anyhow::Result<()> {
    let _ = (args, output);
    anyhow::bail!("sim is not there yet")
}
