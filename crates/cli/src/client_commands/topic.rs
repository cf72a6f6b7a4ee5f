use crate::args::{Output, TopicCommand};

pub(crate) fn run(args: TopicCommand, output: Output) -> anyhow::Result<()> {
    let _ = (args, output);
    anyhow::bail!("topic is not there yet")
}
