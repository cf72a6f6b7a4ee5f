//! What one field becomes in Rust.

use super::names;
use super::schema::{Field, Message, Type, Versions};

/// How a field that may be null is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nullable {
    Never,
    Always,
    /// Only in these of the field's versions.
    In(Versions),
}

/// A field in Rust.
#[derive(Debug)]
pub(super) struct RustField<'a> {
    pub(super) schema: &'a Field,
    pub(super) name: String,
    /// Type with the `Option`.
    pub(super) ty: String,
    pub(super) nullable: Nullable,
    /// The versions of the struct in which the field exists.
    pub(super) versions: Versions,
    /// The value of an absent field.
    pub(super) default: String,
    /// Whether that is what `Default` of its type yields.
    pub(super) is_type_default: bool,
}

impl<'a> RustField<'a> {
    /// `None` when no version of the struct has the field.
    pub(super) fn new(schema: &'a Field, within: Versions) -> Option<Self> {
        let versions = schema.versions.and(within)?;
        let nullable = match schema.nullable.and_then(|it| it.and(versions)) {
            None => Nullable::Never,
            Some(all) if all == versions => Nullable::Always,
            Some(some) => Nullable::In(some),
        };
        let bare = rust_type(&schema.ty, schema);
        let (bare_default, bare_is_default) = default(&bare, schema);
        let (ty, default, is_type_default) = if nullable == Nullable::Never {
            (bare, bare_default, bare_is_default)
        } else if schema.default.as_deref() == Some("null")
            || schema.ty == Type::Primitive("records".into())
        {
            (format!("Option<{bare}>"), "None".to_owned(), true)
        } else {
            (
                format!("Option<{bare}>"),
                format!("Some({bare_default})"),
                false,
            )
        };
        let name = names::field(&schema.name);
        Some(Self {
            schema,
            name,
            ty,
            nullable,
            versions,
            default,
            is_type_default,
        })
    }

    /// Whether it is a tagged struct that may be null: Kafka writes it even when it is null.
    fn is_always_written(&self) -> bool {
        self.schema.tag.is_some() && self.is_nullable_struct()
    }

    /// Whether it is a struct that may be null.
    fn is_nullable_struct(&self) -> bool {
        self.nullable != Nullable::Never && matches!(self.schema.ty, Type::Struct(_))
    }

    /// The expression that reads the field; `within` are the versions that can get there.
    pub(super) fn read(&self, within: Versions) -> String {
        match self.nullable {
            _ if self.schema.inflexible => "r.read_inflexible()?".into(),
            _ if self.is_always_written() => "r.nullable_tagged_struct()?".into(),
            _ if self.is_nullable_struct() => "r.nullable_struct()?".into(),
            Nullable::In(versions) => {
                let condition = condition(versions, within).expect("it differs");
                format!("if {condition} {{ r.read()? }} else {{ Some(r.read()?) }}")
            }
            Nullable::Never | Nullable::Always => "r.read()?".into(),
        }
    }

    /// The statement that writes the field; `within` are the versions that can get there.
    pub(super) fn write(&self, within: Versions) -> String {
        let name = &self.name;
        match self.nullable {
            _ if self.schema.inflexible => format!("w.write_inflexible(&self.{name})?;"),
            _ if self.is_nullable_struct() => {
                format!("w.nullable_struct(self.{name}.as_ref())?;")
            }
            Nullable::In(versions) => {
                let condition = condition(versions, within).expect("it differs");
                format!(
                    "if {condition} {{ self.{name}.write(w)?; }} \
                     else {{ w.write_some(self.{name}.as_ref())?; }}"
                )
            }
            Nullable::Never | Nullable::Always => format!("self.{name}.write(w)?;"),
        }
    }

    /// The statement that writes a tagged field.
    pub(super) fn write_tag(&self, tag: u32) -> String {
        let name = &self.name;
        if self.is_nullable_struct() {
            format!("tags.put_nullable_struct({tag}, self.{name}.as_ref())?;")
        } else {
            format!("tags.put({tag}, &self.{name})?;")
        }
    }

    /// The condition that the field has its default.
    pub(super) fn is_default(&self) -> String {
        self.compare("", "!", "is_none", "is_some_and(|it| it", "==")
    }

    /// The condition that a tagged field has another value than its default; `None` when it is
    /// written in any case.
    pub(super) fn is_set(&self) -> Option<String> {
        let set = || self.compare("!", "", "is_some", "is_none_or(|it| !it", "!=");
        (!self.is_always_written()).then(set)
    }

    fn compare(&self, not: &str, unset: &str, null: &str, inner: &str, equal: &str) -> String {
        let Self { name, default, .. } = self;
        match default.as_str() {
            "false" => format!("{unset}self.{name}"),
            "true" => format!("{}self.{name}", if unset == "!" { "" } else { "!" }),
            "None" => format!("self.{name}.{null}()"),
            _ if default.starts_with("Some(") => {
                format!("self.{name}.as_ref().{inner}.is_empty())")
            }
            _ if ["String", "Vec", "Bytes"]
                .iter()
                .any(|it| self.ty.starts_with(it)) =>
            {
                format!("{not}self.{name}.is_empty()")
            }
            "0.0" => format!("self.{name} {equal} 0.0"),
            _ => format!("self.{name} {equal} {default}"),
        }
    }

    /// The doc comment: what the schema says.
    pub(super) fn doc(&self) -> String {
        let Field {
            versions,
            tag,
            about,
            ..
        } = self.schema;
        let mut doc = about
            .as_ref()
            .map_or(String::new(), |it| format!("/// {it}\n///\n"));
        doc += &format!("/// `{}`, versions {versions}", type_words(&self.schema.ty));
        if let Some(tag) = tag {
            doc += &format!(", tag {tag}");
        }
        match self.nullable {
            Nullable::Never => {}
            Nullable::Always => doc += ", or null",
            Nullable::In(some) => doc += &format!(", or null in versions {some}"),
        }
        doc + ".\n"
    }
}

/// The condition that a version out of `within` is in `versions`; `None` when all are.
pub(super) fn condition(versions: Versions, within: Versions) -> Option<String> {
    let Versions { min, max } = versions;
    match (min <= within.min, max >= within.max) {
        (true, true) => None,
        (false, true) => Some(format!("v >= {min}")),
        (true, false) => Some(format!("v <= {max}")),
        (false, false) if min == max => Some(format!("v == {min}")),
        (false, false) => Some(format!("({min}..={max}).contains(&v)")),
    }
}

/// The smallest size in bytes that the struct `name` has in `versions`.
pub(super) fn struct_size_min(message: &Message, name: &str, versions: Versions) -> usize {
    (versions.min..=versions.max)
        .map(|v| struct_size(message, name, v))
        .min()
        .unwrap_or(0)
}

fn struct_size(message: &Message, name: &str, version: i16) -> usize {
    let flexible = version >= message.flexible_since;
    let fields = message
        .find(name)
        .map_or(&[][..], |it| it.fields.as_slice());
    let present = fields
        .iter()
        .filter(|it| it.versions.contains(version) && it.tag.is_none());
    let size = |field: &Field| {
        let compact = flexible && !field.inflexible;
        match &field.ty {
            Type::Struct(_) if field.nullable.is_some() => 1,
            Type::Struct(name) => struct_size(message, name, version),
            Type::Array(_) => {
                if compact {
                    1
                } else {
                    4
                }
            }
            Type::Primitive(name) => match name.as_str() {
                "bool" | "int8" => 1,
                "int16" | "uint16" => 2,
                "int32" | "uint32" => 4,
                "int64" | "float64" => 8,
                "uuid" => 16,
                _ if compact => 1,
                "string" => 2,
                _ => 4,
            },
        }
    };
    present.map(size).sum::<usize>() + usize::from(flexible)
}

fn rust_type(ty: &Type, field: &Field) -> String {
    let denotes = field.denotes.as_deref();
    let name = match ty {
        Type::Array(element) => return format!("Vec<{}>", rust_type(element, field)),
        Type::Struct(name) => name,
        Type::Primitive(name) => match name.as_str() {
            "int8" => "i8",
            "int16" if field.name.ends_with("ErrorCode") => "ErrorCode",
            "int16" => "i16",
            "uint16" => "u16",
            "int32" if denotes == Some("brokerId") => "NodeId",
            "int32" => "i32",
            "uint32" => "u32",
            "int64" if denotes == Some("producerId") => "ProducerId",
            "int64" => "i64",
            "float64" => "f64",
            "string" => "String",
            "uuid" => "Uuid",
            "bytes" | "records" => "Bytes",
            other => other,
        },
    };
    name.to_owned()
}

/// The default value of a field whose type without `Option` is `ty`, and whether `Default` of the
/// type yields it.
fn default(ty: &str, field: &Field) -> (String, bool) {
    let given = field
        .default
        .as_deref()
        .filter(|it| *it != "null")
        .unwrap_or_default();
    let number = match given.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16),
        None => given.parse(),
    };
    let number = number.unwrap_or(0);
    match ty {
        "bool" => ((given == "true").to_string(), given != "true"),
        "f64" => ("0.0".into(), true),
        "String" => ("String::new()".into(), true),
        "Bytes" => ("Bytes::new()".into(), true),
        "Uuid" => ("Uuid::ZERO".into(), true),
        "ErrorCode" => ("ErrorCode::NONE".into(), true),
        "NodeId" | "ProducerId" if number == -1 => (format!("{ty}::NONE"), true),
        "NodeId" | "ProducerId" => (format!("{ty}::new({number})"), false),
        "i32" if number == i64::from(i32::MAX) => ("i32::MAX".into(), false),
        "i32" if number == i64::from(i32::MIN) => ("i32::MIN".into(), false),
        "i64" if number == i64::MAX => ("i64::MAX".into(), false),
        "i8" | "i16" | "u16" | "i32" | "u32" | "i64" => (number.to_string(), number == 0),
        _ if ty.starts_with("Vec<") => ("Vec::new()".into(), true),
        _ => (format!("{ty}::default()"), true),
    }
}

fn type_words(ty: &Type) -> String {
    match ty {
        Type::Array(element) => format!("[]{}", type_words(element)),
        Type::Primitive(name) | Type::Struct(name) => name.clone(),
    }
}
