use crate::args::{ClusterCommand, Output};

pub(crate) fn run(args: ClusterCommand, output: Output) -> anyhow::Result<()> {
    let _ = (args, output);
    anyhow::bail!("cluster is not there yet")
}
