//! The machines of a node: connection, data shard and control.
