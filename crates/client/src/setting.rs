//! The values of Kafka's keys, as text becomes them.

use std::str::FromStr;

use highwater_types::Millis;

use crate::error::ClientError;

/// Why a value is not taken.
pub(crate) fn refused(key: &'static str, value: &str, why: &str) -> ClientError {
    ClientError::Config {
        key,
        value: value.to_owned(),
        why: why.to_owned(),
    }
}

/// A number of an unsigned type.
pub(crate) fn number<T: FromStr>(key: &'static str, value: &str) -> Result<T, ClientError> {
    let why = "a whole number that is not negative is needed";
    value.parse().map_err(|_| refused(key, value, why))
}

/// A number that goes over the wire as an int32, and is not negative.
pub(crate) fn wire_number(key: &'static str, value: &str) -> Result<i32, ClientError> {
    let number = value.parse().ok().filter(|number| *number >= 0);
    let why = "a whole number from 0 to 2147483647 is needed";
    number.ok_or_else(|| refused(key, value, why))
}

/// A span of milliseconds.
pub(crate) fn millis(key: &'static str, value: &str) -> Result<Millis, ClientError> {
    let why = "a number of milliseconds is needed";
    let number = value.parse().map(Millis::new);
    number.map_err(|_| refused(key, value, why))
}

/// A span of milliseconds that goes over the wire as an int32.
pub(crate) fn wire_millis(key: &'static str, value: &str) -> Result<Millis, ClientError> {
    wire_number(key, value).map(Millis::from_wire)
}

/// On or off.
pub(crate) fn switch(key: &'static str, value: &str) -> Result<bool, ClientError> {
    let why = "it is true or false";
    value.parse().map_err(|_| refused(key, value, why))
}
