//! The client's half of the protocol, sans-IO.
