//! The async client: connections, a batching producer, a consumer by partition.
