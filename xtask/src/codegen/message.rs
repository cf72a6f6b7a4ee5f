//! The Rust source of one message.

use std::collections::BTreeMap;

use super::field::{RustField, condition, struct_size_min};
use super::list::Group;
use super::names;
use super::schema::{Kind, Message, Struct, Type, Versions};

/// The source of `message`, whose schema is in the file `schema`. Not yet formatted.
pub(super) fn source(message: &Message, schema: &str, group: &Group) -> String {
    let mut body = String::new();
    for (name, versions) in struct_versions(message) {
        let it = message.find(&name).expect("a used struct is defined");
        body += &struct_source(message, it, versions, group);
    }
    let Message {
        name,
        versions,
        flexible_since,
        ..
    } = message;
    let Versions { min, max } = versions;
    let flexible = match *flexible_since {
        i16::MAX => "i16::MAX".to_owned(),
        since => since.to_string(),
    };
    body += &format!(
        "impl Message for {name} {{
            const NAME: &'static str = \"{name}\";
            const VERSIONS: (i16, i16) = ({min}, {max});
            const FLEXIBLE_SINCE: i16 = {flexible};
        }}\n"
    );
    format!(
        "//! Generated from `{schema}` by `cargo xtask codegen`; not edited by hand.\n\n{}\n{body}",
        imports(&body, group)
    )
}

fn imports(body: &str, group: &Group) -> String {
    let mut imports = String::new();
    if body.contains("Bytes") {
        imports += "use bytes::Bytes;\n";
    }
    let types: Vec<&str> = ["ErrorCode", "NodeId", "ProducerId", "Uuid"]
        .into_iter()
        .filter(|name| {
            let used = [
                format!(": {name}"),
                format!("<{name}>"),
                format!("{name}::"),
            ];
            used.iter().any(|used| body.contains(used.as_str()))
        })
        .collect();
    if !types.is_empty() {
        imports += &format!("use highwater_types::{{{}}};\n", types.join(", "));
    }
    if group.json {
        imports += "use serde_json::Value;\n";
        imports += "\nuse crate::stored::json::{Object, ToJson};\n";
    } else {
        imports += "\n";
    }
    let wire = group.wire;
    imports + &format!("use {wire}::{{DecodeError, EncodeError, Message, Reader, Wire, Writer}};\n")
}

/// The structs that are used in a version that exists, each with the versions in which it is
/// used, the message's own first.
fn struct_versions(message: &Message) -> Vec<(String, Versions)> {
    let mut versions = BTreeMap::new();
    visit(message, message.root(), message.versions, &mut versions);
    let used = message.structs.iter();
    used.filter_map(|it| Some((it.name.clone(), *versions.get(&it.name)?)))
        .collect()
}

fn visit(
    message: &Message,
    it: &Struct,
    within: Versions,
    versions: &mut BTreeMap<String, Versions>,
) {
    let known = versions
        .get(&it.name)
        .map_or(within, |known| known.hull(within));
    versions.insert(it.name.clone(), known);
    for field in &it.fields {
        let inner = field.ty.struct_name().and_then(|name| message.find(name));
        if let (Some(inner), Some(within)) = (inner, field.versions.and(within)) {
            visit(message, inner, within, versions);
        }
    }
}

fn struct_source(message: &Message, it: &Struct, within: Versions, group: &Group) -> String {
    let fields: Vec<RustField<'_>> = it
        .fields
        .iter()
        .filter_map(|field| RustField::new(field, within))
        .collect();
    let name = &it.name;
    let simple = fields.iter().all(|field| field.is_type_default);
    let doc = if *name == message.name {
        message_doc(message)
    } else {
        format!("/// Part of [`{}`].\n", message.name)
    };
    let mut source = format!(
        "{doc}#[derive(Clone, Debug, {}PartialEq{})]\npub struct {name} {{\n",
        if simple { "Default, " } else { "" },
        if has_float(message, it) { "" } else { ", Eq" },
    );
    for field in &fields {
        source += &format!("{}pub {}: {},\n", field.doc(), field.name, field.ty);
    }
    source += "}\n\n";
    if !simple {
        source += &format!("impl Default for {name} {{\nfn default() -> Self {{\nSelf {{\n");
        for field in &fields {
            source += &format!("{}: {},\n", field.name, field.default);
        }
        source += "}\n}\n}\n\n";
    }
    source += &format!(
        "impl Wire for {name} {{
            const SIZE_MIN: usize = {};

            fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {{\n{}}}

            fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {{\n{}}}
        }}\n\n",
        struct_size_min(message, name, within),
        with_version("r", read_body(message, &fields, within)),
        with_version("w", write_body(message, &fields, within)),
    );
    if group.json {
        source += &json_source(name, &fields, within);
    }
    source
}

fn message_doc(message: &Message) -> String {
    let id = message.id.unwrap_or_default();
    let what = match message.kind {
        Kind::Request => format!("A request of API {id}"),
        Kind::Response => format!("An answer of API {id}"),
        Kind::Header => "A header".to_owned(),
        Kind::Metadata => format!("A record of the cluster metadata, type {id}"),
        Kind::CoordinatorKey => format!("A key of a coordinator's log, type {id}"),
        Kind::CoordinatorValue => format!("A value of a coordinator's log, type {id}"),
        Kind::Data => "Stored data".to_owned(),
    };
    format!("/// {what}; versions {}.\n", message.versions)
}

fn has_float(message: &Message, it: &Struct) -> bool {
    it.fields.iter().any(|field| {
        field.ty == Type::Primitive("float64".into())
            || field
                .ty
                .struct_name()
                .and_then(|name| message.find(name))
                .is_some_and(|inner| has_float(message, inner))
    })
}

/// Puts a variable for the version in front when `body` has a condition on it.
fn with_version(of: &str, body: String) -> String {
    let asked = ["v >", "v <", "v ==", "(&v)"]
        .iter()
        .any(|it| body.contains(it));
    if asked {
        format!("let v = {of}.version();\n{body}")
    } else {
        body
    }
}

fn read_body(message: &Message, fields: &[RustField<'_>], within: Versions) -> String {
    let flexible = message.flexible_since <= within.max;
    let always = |field: &&RustField<'_>| field.versions == within && field.schema.tag.is_none();
    let (tagged, plain): (Vec<_>, Vec<_>) = fields.iter().partition(|it| it.schema.tag.is_some());
    let leading = plain.iter().take_while(|field| always(field)).count();
    let (first, later) = plain.split_at(leading);
    let mut literal = String::new();
    for field in first {
        literal += &format!("{}: {},\n", field.name, field.read(within));
    }
    let rest = if leading < fields.len() {
        "..Self::default()"
    } else {
        ""
    };
    let literal = match leading {
        0 if rest.is_empty() => "Self {}".to_owned(),
        0 => "Self::default()".to_owned(),
        _ => format!("Self {{\n{literal}{rest}}}"),
    };
    if later.is_empty() && tagged.is_empty() {
        return match (flexible, leading) {
            (false, _) => format!("Ok({literal})\n"),
            (true, 0) => format!("r.skip_tags()?;\nOk({literal})\n"),
            (true, _) => format!("let it = {literal};\nr.skip_tags()?;\nOk(it)\n"),
        };
    }
    let mut body = format!("let mut it = {literal};\n");
    for (condition, fields) in by_condition(later, within) {
        let reads: String = fields
            .iter()
            .map(|field| format!("it.{} = {};\n", field.name, field.read(field.versions)))
            .collect();
        body += &conditional(condition, &reads, "");
    }
    body += &read_tags(message, &tagged, within);
    body + "Ok(it)\n"
}

fn read_tags(message: &Message, tagged: &[&RustField<'_>], within: Versions) -> String {
    if tagged.is_empty() {
        return if message.flexible_since <= within.max {
            "r.skip_tags()?;\n".into()
        } else {
            String::new()
        };
    }
    let flexible = Versions {
        min: message.flexible_since,
        max: i16::MAX,
    }
    .and(within)
    .unwrap_or(within);
    let mut body = "r.tags(|tag, r| {\nmatch tag {\n".to_owned();
    for field in tagged {
        let tag = field.schema.tag.unwrap_or_default();
        let guard = condition(field.versions, flexible)
            .map_or(String::new(), |condition| format!(" if {condition}"));
        body += &format!(
            "{tag}{guard} => it.{} = {},\n",
            field.name,
            field.read(within)
        );
    }
    body + "_ => return Ok(false),\n}\nOk(true)\n})?;\n"
}

fn write_body(message: &Message, fields: &[RustField<'_>], within: Versions) -> String {
    let mut body = String::new();
    let (mut tagged, plain): (Vec<_>, Vec<_>) =
        fields.iter().partition(|it| it.schema.tag.is_some());
    for (condition, fields) in by_condition(&plain, within) {
        let writes: String = fields
            .iter()
            .map(|field| field.write(field.versions) + "\n")
            .collect();
        let absent: String = fields.iter().map(|field| absent(field)).collect();
        body += &conditional(condition, &writes, &absent);
    }
    for (condition, fields) in by_condition(&tagged, within) {
        let absent: String = fields.iter().map(|field| absent(field)).collect();
        if condition.is_some() && !absent.is_empty() {
            let versions = fields.first().expect("groups are not empty").versions;
            body += &conditional(Some(outside(versions, within)), &absent, "");
        }
    }
    tagged.sort_by_key(|field| field.schema.tag);
    let flexible = Versions {
        min: message.flexible_since,
        max: i16::MAX,
    }
    .and(within);
    match flexible {
        None => {}
        Some(_) if tagged.is_empty() => body += "w.no_tags();\n",
        Some(flexible) => {
            body += "w.tags(|tags| {\n";
            for field in &tagged {
                let put = field.write_tag(field.schema.tag.unwrap_or_default());
                let version = condition(field.versions, flexible);
                body += &conditional(both(version, field.is_set()), &(put + "\n"), "");
            }
            return body + "Ok(())\n})\n";
        }
    }
    body + "Ok(())\n"
}

/// The check that a field which the version lacks may be dropped.
fn absent(field: &RustField<'_>) -> String {
    if field.schema.ignorable {
        return String::new();
    }
    format!(
        "w.absent({}, \"{}\")?;\n",
        field.is_default(),
        field.schema.name
    )
}

/// The condition that a version out of `within` is not in `versions`.
fn outside(versions: Versions, within: Versions) -> String {
    let Versions { min, max } = versions;
    match (min <= within.min, max >= within.max) {
        (false, true) => format!("v < {min}"),
        (true, false) => format!("v > {max}"),
        _ => format!("!({min}..={max}).contains(&v)"),
    }
}

/// Neighbours with the same condition, together.
fn by_condition<'f, 's>(
    fields: &[&'f RustField<'s>],
    within: Versions,
) -> Vec<(Option<String>, Vec<&'f RustField<'s>>)> {
    let mut groups: Vec<(Option<String>, Vec<&RustField<'_>>)> = Vec::new();
    for field in fields {
        let condition = condition(field.versions, within);
        match groups.last_mut() {
            Some((last, group)) if *last == condition => group.push(field),
            _ => groups.push((condition, vec![field])),
        }
    }
    groups
}

/// Two conditions that must both hold, as far as there are any.
fn both(version: Option<String>, set: Option<String>) -> Option<String> {
    match (version, set) {
        (Some(version), Some(set)) => Some(format!("{version} && {set}")),
        (version, set) => version.or(set),
    }
}

fn conditional(condition: Option<String>, then: &str, otherwise: &str) -> String {
    match condition {
        None => then.to_owned(),
        Some(condition) if otherwise.is_empty() => format!("if {condition} {{\n{then}}}\n"),
        Some(condition) => format!("if {condition} {{\n{then}}} else {{\n{otherwise}}}\n"),
    }
}

fn json_source(name: &str, fields: &[RustField<'_>], within: Versions) -> String {
    let mut puts = String::new();
    let mut open: Vec<(Option<String>, String)> = Vec::new();
    for field in fields {
        let json = names::json(&field.schema.name);
        let put = format!("it.put(\"{json}\", &self.{}, v);\n", field.name);
        let version = condition(field.versions, within);
        match (field.schema.tag, version) {
            (Some(_), version) => open.push((both(version, field.is_set()), put)),
            (None, version) => match open.last_mut() {
                Some((last, puts)) if *last == version => *puts += &put,
                _ => open.push((version, put)),
            },
        }
    }
    for (condition, group) in open {
        puts += &conditional(condition, &group, "");
    }
    let (mutable, v) = if puts.is_empty() {
        ("", "_v")
    } else {
        ("mut ", "v")
    };
    format!(
        "impl ToJson for {name} {{
            fn to_json(&self, {v}: i16) -> Value {{
                let {mutable}it = Object::default();
                {puts}it.into()
            }}
        }}\n\n"
    )
}
