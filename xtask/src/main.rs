//! The project's own tools.

fn main() {}
