//! Writes messages by interpreting their schemas: a second opinion on the bytes, which shares
//! nothing with the generated code but the parser of the schemas.

use super::schema::{Field, Message, Type};

/// A source of decisions. Used up, it decides for the smallest.
pub(super) struct Entropy<'a>(pub(super) &'a [u8]);

impl Entropy<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn below(&mut self, limit: u8) -> u8 {
        self.next() % limit
    }

    fn fill<const N: usize>(&mut self) -> Vec<u8> {
        // Mostly small numbers, so that lengths and ids are not all absurd.
        let wild = self.below(3) == 2;
        (0..N)
            .map(|at| if wild || at + 1 == N { self.next() } else { 0 })
            .collect()
    }
}

/// One way to write `message` at `version`.
pub(super) fn write(message: &Message, version: i16, entropy: &mut Entropy<'_>) -> Vec<u8> {
    let flexible = version >= message.flexible_since;
    let mut writer = SchemaWriter {
        message,
        version,
        flexible,
        bytes: Vec::new(),
    };
    writer.fields(&message.root().fields, entropy);
    writer.bytes
}

struct SchemaWriter<'a> {
    message: &'a Message,
    version: i16,
    flexible: bool,
    bytes: Vec<u8>,
}

impl SchemaWriter<'_> {
    fn fields(&mut self, fields: &[Field], entropy: &mut Entropy<'_>) {
        let present = |field: &&Field| field.versions.contains(self.version);
        let (mut tagged, plain): (Vec<&Field>, Vec<&Field>) = fields
            .iter()
            .filter(present)
            .partition(|it| it.tag.is_some());
        for field in plain {
            self.value(field, entropy);
        }
        if !self.flexible {
            return;
        }
        tagged.sort_by_key(|field| field.tag);
        let mut written = Vec::new();
        for field in tagged {
            let value = self.apart(|it| it.value(field, entropy));
            let default = self.apart(|it| it.default(field));
            // Kafka writes a struct that may be null in any case.
            let always = field.nullable.is_some() && matches!(field.ty, Type::Struct(_));
            if always || value != default {
                written.push((field.tag.expect("it is tagged"), value));
            }
        }
        self.varint(written.len());
        for (tag, value) in written {
            self.varint(tag as usize);
            self.varint(value.len());
            self.bytes.extend(value);
        }
    }

    /// What `write` writes, on its own.
    fn apart(&mut self, write: impl FnOnce(&mut Self)) -> Vec<u8> {
        let before = std::mem::take(&mut self.bytes);
        write(self);
        std::mem::replace(&mut self.bytes, before)
    }

    fn value(&mut self, field: &Field, entropy: &mut Entropy<'_>) {
        let nullable = field.nullable.is_some_and(|it| it.contains(self.version));
        let null = nullable && entropy.below(3) == 0;
        match &field.ty {
            Type::Struct(name) => {
                if nullable {
                    self.presence(field, !null);
                }
                if !null {
                    self.structure(name, entropy);
                }
            }
            Type::Array(element) => {
                let count = entropy.below(3) as usize;
                self.length(field, (!null).then_some(count), 4);
                for _ in 0..if null { 0 } else { count } {
                    match element.as_ref() {
                        Type::Struct(name) => self.structure(name, entropy),
                        Type::Primitive(name) => self.primitive(field, name, false, entropy),
                        Type::Array(_) => unreachable!("no message has arrays of arrays"),
                    }
                }
            }
            Type::Primitive(name) => self.primitive(field, name, null, entropy),
        }
    }

    fn structure(&mut self, name: &str, entropy: &mut Entropy<'_>) {
        let message = self.message;
        let it = message.find(name).expect("a used struct is defined");
        self.fields(&it.fields, entropy);
    }

    /// The byte in front of a struct that may be null.
    fn presence(&mut self, field: &Field, present: bool) {
        let null = if field.tag.is_some() { 0 } else { 0xff };
        self.bytes.push(if present { 1 } else { null });
    }

    fn primitive(&mut self, field: &Field, ty: &str, null: bool, entropy: &mut Entropy<'_>) {
        let bytes = match ty {
            "bool" => vec![entropy.below(2)],
            "int8" => entropy.fill::<1>(),
            "int16" | "uint16" => entropy.fill::<2>(),
            "int32" | "uint32" => entropy.fill::<4>(),
            "int64" => entropy.fill::<8>(),
            "float64" => f64::from(entropy.next()).to_be_bytes().to_vec(),
            "uuid" => entropy.fill::<16>(),
            _ => {
                let text = match entropy.below(4) {
                    0 => String::new(),
                    1 => "orders".to_owned(),
                    2 => "h\u{f6}chst".to_owned(),
                    _ => "long".repeat(usize::from(entropy.next())),
                };
                let prefix = if ty == "string" { 2 } else { 4 };
                self.length(field, (!null).then_some(text.len()), prefix);
                if null { Vec::new() } else { text.into_bytes() }
            }
        };
        self.bytes.extend(bytes);
    }

    /// The default of a tagged field.
    fn default(&mut self, field: &Field) {
        let null = field.default.as_deref() == Some("null");
        match &field.ty {
            Type::Array(_) => self.length(field, (!null).then_some(0), 4),
            Type::Struct(name) => {
                let message = self.message;
                let it = message.find(name).expect("a used struct is defined");
                for field in &it.fields {
                    self.default(field);
                }
                // The struct's own tagged fields, of which no default is written.
                self.varint(0);
            }
            Type::Primitive(name) => {
                let number: i64 = field
                    .default
                    .as_deref()
                    .and_then(|it| it.parse().ok())
                    .unwrap_or(0);
                let wide = number.to_be_bytes();
                let size = match name.as_str() {
                    "bool" | "int8" => 1,
                    "int16" | "uint16" => 2,
                    "int32" | "uint32" => 4,
                    "int64" | "float64" => 8,
                    "uuid" => return self.bytes.extend([0; 16]),
                    _ => return self.length(field, (!null).then_some(0), 2),
                };
                self.bytes.extend(wide.iter().skip(8 - size));
            }
        }
    }

    /// A length of `prefix` bytes, or a compact one.
    fn length(&mut self, field: &Field, length: Option<usize>, prefix: usize) {
        if self.flexible && !field.inflexible {
            return self.varint(length.map_or(0, |it| it + 1));
        }
        let wide = length.map_or(-1, |it| i64::try_from(it).expect("a small length"));
        self.bytes
            .extend(wide.to_be_bytes().iter().skip(8 - prefix));
    }

    fn varint(&mut self, mut value: usize) {
        while value > 127 {
            self.bytes
                .push(u8::try_from(value % 128).expect("seven bits") + 128);
            value /= 128;
        }
        self.bytes.push(u8::try_from(value).expect("seven bits"));
    }
}
