//! The KRaft quorum, with one voter for now.
