//! Who may do what. Every handler asks the one [`Authorizer`] of its machine before it acts.

use std::fmt;

use crate::machine::Caller;

/// Decides whether a caller may do an operation on a resource.
///
/// A broker asks for what its clients send, also for what it then sends on to the controller; the
/// controller asks for what brokers send it.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// Whether `caller` may do `operation` on `resource`.
    fn allows(&self, caller: &Caller, operation: Operation, resource: Resource<'_>) -> bool;

    /// Everything that `caller` may do on `resource`, as bits of Kafka's numbers (KIP-430).
    fn operations(&self, caller: &Caller, resource: Resource<'_>) -> i32 {
        let allowed = resource.operations().iter();
        allowed
            .filter(|operation| self.allows(caller, **operation, resource))
            .fold(0, |bits, operation| bits | operation.bit())
    }
}

/// What is answered for operations when nobody asked (KIP-430).
pub const OPERATIONS_NOT_ASKED: i32 = i32::MIN;

/// Lets everybody do everything: there are no ACLs yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllowAll;

impl Authorizer for AllowAll {
    fn allows(&self, _: &Caller, _: Operation, _: Resource<'_>) -> bool {
        true
    }
}

/// What somebody wants to do, with Kafka's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Operation {
    /// READ.
    Read = 3,
    /// WRITE.
    Write = 4,
    /// CREATE.
    Create = 5,
    /// DELETE.
    Delete = 6,
    /// ALTER.
    Alter = 7,
    /// DESCRIBE.
    Describe = 8,
    /// CLUSTER_ACTION: what brokers do with each other.
    ClusterAction = 9,
    /// DESCRIBE_CONFIGS.
    DescribeConfigs = 10,
    /// ALTER_CONFIGS.
    AlterConfigs = 11,
    /// IDEMPOTENT_WRITE.
    IdempotentWrite = 12,
}

impl Operation {
    /// Its bit in a set of operations.
    const fn bit(self) -> i32 {
        1 << (self as u8)
    }
}

/// What something is done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource<'a> {
    /// A topic, by name.
    Topic(&'a str),
    /// A group, by id.
    Group(&'a str),
    /// The cluster.
    Cluster,
    /// A transactional id.
    TransactionalId(&'a str),
}

impl Resource<'_> {
    /// The operations that exist on a resource of this kind.
    const fn operations(self) -> &'static [Operation] {
        use Operation::{
            Alter, AlterConfigs, ClusterAction, Create, Delete, Describe, DescribeConfigs,
            IdempotentWrite, Read, Write,
        };
        match self {
            Self::Topic(_) => &[
                Read,
                Write,
                Create,
                Delete,
                Alter,
                Describe,
                DescribeConfigs,
                AlterConfigs,
            ],
            Self::Group(_) => &[Read, Delete, Describe, DescribeConfigs, AlterConfigs],
            Self::Cluster => &[
                Create,
                Alter,
                Describe,
                ClusterAction,
                DescribeConfigs,
                AlterConfigs,
                IdempotentWrite,
            ],
            Self::TransactionalId(_) => &[Write, Describe],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loopback::Loopback;

    /// Only reading, by anybody.
    #[derive(Debug)]
    struct OnlyReads;

    impl Authorizer for OnlyReads {
        fn allows(&self, _: &Caller, operation: Operation, _: Resource<'_>) -> bool {
            matches!(operation, Operation::Read | Operation::Describe)
        }
    }

    #[test]
    fn the_sets_of_operations_are_kafkas() {
        let caller = Loopback::caller();
        let all = |resource| AllowAll.operations(&caller, resource);
        assert_eq!(all(Resource::Topic("t")), 3576);
        assert_eq!(all(Resource::Cluster), 8096);
        assert_eq!(all(Resource::Group("g")), 3400);
        let read = |resource| OnlyReads.operations(&caller, resource);
        assert_eq!(read(Resource::Topic("t")), (1 << 3) | (1 << 8));
        assert_eq!(read(Resource::Cluster), 1 << 8);
    }
}
