use crate::args::{Output, ProduceArgs};

pub(crate) fn run(args: ProduceArgs, output: Output) -> anyhow::Result<()> {
    let _ = (args, output);
    anyhow::bail!("produce is not there yet")
}
