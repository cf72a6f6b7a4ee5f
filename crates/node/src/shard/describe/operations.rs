/// The operations on a topic that a caller may do, as bits of Kafka's numbers: READ, WRITE,
/// CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS and ALTER_CONFIGS. Everyone may do everything
/// until there is an authorizer.
pub(crate) const TOPIC_OPERATIONS: i32 = 3576;

/// The operations on the cluster, in the same way: CREATE, ALTER, DESCRIBE, CLUSTER_ACTION,
/// DESCRIBE_CONFIGS, ALTER_CONFIGS and IDEMPOTENT_WRITE.
pub(crate) const CLUSTER_OPERATIONS: i32 = 8096;

/// What is answered when nobody asked (KIP-430).
pub(crate) const OPERATIONS_NOT_ASKED: i32 = i32::MIN;
