use bytes::Bytes;
use highwater_types::{ErrorCode, NodeId, ProducerId, Uuid};

use super::{DecodeError, EncodeError, Reader, Writer};

/// A value that a field of a message can have, or a struct of such fields.
pub trait Wire: Sized {
    /// No value is smaller than this many bytes, at any version.
    const SIZE_MIN: usize;

    /// Reads a value at the reader's version.
    ///
    /// # Errors
    /// When the bytes are not such a value.
    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError>;

    /// Writes the value at the writer's version.
    ///
    /// # Errors
    /// When the version cannot carry the value.
    fn write(&self, w: &mut Writer) -> Result<(), EncodeError>;
}

macro_rules! big_endian {
    ($($number:ty)*) => {$(
        impl Wire for $number {
            const SIZE_MIN: usize = size_of::<Self>();

            fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                Ok(Self::from_be_bytes(r.array()?))
            }

            fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
                w.put(&self.to_be_bytes());
                Ok(())
            }
        }
    )*};
}

big_endian! { i8 i16 u16 i32 u32 i64 f64 }

macro_rules! newtype {
    ($($name:ty: $raw:ty,)*) => {$(
        impl Wire for $name {
            const SIZE_MIN: usize = size_of::<$raw>();

            fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                r.read().map(Self::new)
            }

            fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
                self.raw().write(w)
            }
        }
    )*};
}

newtype! {
    ErrorCode: i16,
    NodeId: i32,
    ProducerId: i64,
}

impl Wire for bool {
    const SIZE_MIN: usize = 1;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.array().map(|[byte]| byte != 0)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        w.put(&[u8::from(*self)]);
        Ok(())
    }
}

impl Wire for Uuid {
    const SIZE_MIN: usize = 16;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.array().map(Self::from_bytes)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        w.put(&self.to_bytes());
        Ok(())
    }
}

impl Wire for String {
    const SIZE_MIN: usize = 1;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.str().map(Self::from)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        w.nullable_str(Some(self))
    }
}

impl Wire for Option<String> {
    const SIZE_MIN: usize = 1;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(r.nullable_str()?.map(String::from))
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        w.nullable_str(self.as_deref())
    }
}

impl Wire for Bytes {
    const SIZE_MIN: usize = 1;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.nullable_bytes()?.ok_or(DecodeError::Null)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        w.length(Some(self.len()))?;
        w.put(self);
        Ok(())
    }
}

impl Wire for Option<Bytes> {
    const SIZE_MIN: usize = 1;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.nullable_bytes()
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        match self {
            Some(bytes) => bytes.write(w),
            None => w.length(None),
        }
    }
}

impl<T: Wire> Wire for Vec<T> {
    const SIZE_MIN: usize = 1;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.nullable_array()?.ok_or(DecodeError::Null)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        w.nullable_array(Some(self))
    }
}

impl<T: Wire> Wire for Option<Vec<T>> {
    const SIZE_MIN: usize = 1;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.nullable_array()
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        w.nullable_array(self.as_deref())
    }
}
