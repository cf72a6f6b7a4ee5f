//! Consumer groups: a consumer that is member of one, and the way to a group's coordinator.

mod admin;
mod config;
mod consumer;
mod coordinator;
mod lag;
mod membership;
mod offsets;

pub use self::admin::{GroupDescription, GroupListing, MemberDescription};
pub use self::config::GroupConfig;
pub use self::consumer::GroupConsumer;
pub use self::lag::RecordCounts;
pub use self::offsets::{CommitResults, CommittedOffsets};
