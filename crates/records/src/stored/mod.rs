//! The records that Kafka stores in its internal topics and in control batches: generated
//! messages, their framing, and their JSON as Kafka's log dump prints it.

pub mod coordinator;
mod coordinator_record;
pub mod data;
mod dump;
pub mod json;
pub mod metadata;
mod metadata_record;

pub use self::coordinator::{GroupRecord, ShareRecord, TransactionRecord};
pub use self::dump::{DumpedRecord, dump_control};
pub use self::metadata::MetadataRecord;
