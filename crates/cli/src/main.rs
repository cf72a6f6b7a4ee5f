//! The highwater command.

mod args;
mod log_dump;

fn main() {}
