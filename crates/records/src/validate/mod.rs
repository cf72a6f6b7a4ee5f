//! The one pass over a batch that a client produced.

mod pass;
mod rules;
mod validated;

pub use self::pass::{INLINE_BYTES_MAX, Validator, needs_job, validate};
pub use self::rules::ValidationRules;
pub use self::validated::Validated;
