//! The zigzag varints inside records: 7 bits a byte, lowest first; at most 5 bytes for 32 bits and
//! 10 for 64.

/// The most bytes that a 32-bit varint takes.
pub const VARINT_BYTES_MAX: usize = 5;
/// The most bytes that a 64-bit varint takes.
pub const VARLONG_BYTES_MAX: usize = 10;

/// Reads a signed 32-bit varint off the front of `bytes`. `None`, with `bytes` unchanged, when it
/// is cut short or longer than five bytes.
#[inline]
pub fn take_varint(bytes: &mut &[u8]) -> Option<i32> {
    let mut value = 0_u32;
    for (index, &byte) in bytes.iter().take(VARINT_BYTES_MAX).enumerate() {
        value |= u32::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            *bytes = bytes.get(index + 1..).unwrap_or_default();
            return Some(unzigzag32(value));
        }
    }
    None
}

/// Reads a signed 64-bit varint off the front of `bytes`. `None`, with `bytes` unchanged, when it
/// is cut short or longer than ten bytes.
#[inline]
pub fn take_varlong(bytes: &mut &[u8]) -> Option<i64> {
    let mut value = 0_u64;
    for (index, &byte) in bytes.iter().take(VARLONG_BYTES_MAX).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            *bytes = bytes.get(index + 1..).unwrap_or_default();
            return Some(unzigzag64(value));
        }
    }
    None
}

/// Appends `value` as a signed 32-bit varint.
pub fn put_varint(out: &mut Vec<u8>, value: i32) {
    put_varlong(out, i64::from(value));
}

/// Appends `value` as a signed 64-bit varint.
pub fn put_varlong(out: &mut Vec<u8>, value: i64) {
    let mut rest = zigzag64(value);
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push((rest & 0x7f) as u8);
}

/// How many bytes `value` takes as a signed 32-bit varint.
#[must_use]
pub const fn varint_bytes(value: i32) -> usize {
    varlong_bytes(value as i64)
}

/// How many bytes `value` takes as a signed 64-bit varint.
#[must_use]
pub const fn varlong_bytes(value: i64) -> usize {
    let bits = 64 - (zigzag64(value) | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// The value that 32 zigzag bits mean.
#[inline]
pub(crate) const fn unzigzag32(raw: u32) -> i32 {
    ((raw >> 1) ^ (raw & 1).wrapping_neg()).cast_signed()
}

/// The value that 64 zigzag bits mean.
#[inline]
pub(crate) const fn unzigzag64(raw: u64) -> i64 {
    ((raw >> 1) ^ (raw & 1).wrapping_neg()).cast_signed()
}

const fn zigzag64(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn edges_have_the_known_bytes() {
        for (value, bytes) in [
            (0, vec![0]),
            (-1, vec![1]),
            (1, vec![2]),
            (63, vec![126]),
            (64, vec![0x80, 1]),
            (i64::from(i32::MAX), vec![0xfe, 0xff, 0xff, 0xff, 0x0f]),
            (i64::from(i32::MIN), vec![0xff, 0xff, 0xff, 0xff, 0x0f]),
            (i64::MIN, [vec![0xff; 9], vec![1]].concat()),
        ] {
            let mut out = Vec::new();
            put_varlong(&mut out, value);
            assert_eq!(out, bytes, "{value}");
            assert_eq!(varlong_bytes(value), bytes.len(), "{value}");
        }
    }

    #[test]
    fn b_12_overlong_and_cut_varints_are_refused() {
        for bad in [
            &[][..],
            &[0x80],
            &[0xff; 4],
            &[0xff; 5],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 1],
        ] {
            let mut rest = bad;
            assert_eq!(take_varint(&mut rest), None, "{bad:?}");
            assert_eq!(rest.len(), bad.len(), "position not moved");
        }
        for bad in [&[][..], &[0x80; 9], &[0xff; 10], &[0xff; 11]] {
            let mut rest = bad;
            assert_eq!(take_varlong(&mut rest), None, "{bad:?}");
            assert_eq!(rest.len(), bad.len(), "position not moved");
        }
    }

    proptest! {
        #[test]
        fn varlong_round_trips(value: i64) {
            let mut out = Vec::new();
            put_varlong(&mut out, value);
            prop_assert_eq!(out.len(), varlong_bytes(value));
            let mut rest = out.as_slice();
            prop_assert_eq!(take_varlong(&mut rest), Some(value));
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn varint_round_trips(value: i32) {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            let mut rest = out.as_slice();
            prop_assert_eq!(take_varint(&mut rest), Some(value));
            prop_assert!(rest.is_empty());
        }
    }
}
