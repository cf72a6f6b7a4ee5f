//! The client's half of the protocol, sans-IO: which versions both sides speak
//! ([`PeerVersions`]), which answer belongs to which request ([`ClientConnection`]), and what a
//! consumer keeps in mind about its fetch session ([`FetchSession`]), and what a replica does
//! ([`ReplicaFetchSession`]).

mod connection;
mod fetch_session;
pub mod group;
mod replica_fetch_session;
mod versions;

pub use self::connection::{
    ClientConnection, ClientError, OutFrame, Received, SendError, Software,
};
pub use self::fetch_session::{FetchLimits, FetchSession, SessionError, WantedPartition};
pub use self::replica_fetch_session::{ReplicaFetch, ReplicaFetchSession, ReplicaPosition};
pub use self::versions::PeerVersions;
