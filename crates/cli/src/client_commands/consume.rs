use crate::args::{ConsumeArgs, Output};

pub(crate) fn run(args: ConsumeArgs, output: Output) -> anyhow::Result<()> {
    let _ = (args, output);
    anyhow::bail!("consume is not there yet")
}
