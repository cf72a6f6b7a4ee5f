/// Lines of a directory's checkpoint files, on their way to the shard that writes them.
#[derive(Debug)]
pub enum CheckpointPart {}
