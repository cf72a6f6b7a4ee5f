//! The `mod.rs` of a folder of generated messages.

use super::list::{Group, SCHEMAS};
use super::names;
use super::schema::{Kind, Message};

/// The source of the folder's `mod.rs`. Not yet formatted.
pub(super) fn source(messages: &[Message], group: &Group) -> String {
    let mut source = format!(
        "//! {}\n//!\n//! Generated from `{SCHEMAS}` by `cargo xtask codegen`; \
         not edited by hand.\n\n",
        group.about
    );
    let mut sorted: Vec<(String, &str)> = messages
        .iter()
        .map(|it| (names::snake(&it.name), it.name.as_str()))
        .collect();
    sorted.sort();
    for (module, _) in &sorted {
        source += &format!("pub mod {module};\n");
    }
    source += "\npub use self::{\n";
    for (module, name) in &sorted {
        source += &format!("{module}::{name},\n");
    }
    source += &format!(
        "}};\nuse {}::MessageInfo;\n\n/// All of them, for tests and fuzzers.\n\
         pub const ALL: &[MessageInfo] = &[\n",
        group.wire
    );
    for (_, name) in &sorted {
        source += &format!("MessageInfo::of::<{name}>(),\n");
    }
    source + "];\n\n" + &metadata(messages) + &coordinator(messages)
}

/// The enum of all metadata records.
fn metadata(messages: &[Message]) -> String {
    let mut records: Vec<&Message> = messages
        .iter()
        .filter(|it| it.kind == Kind::Metadata)
        .collect();
    if records.is_empty() {
        return String::new();
    }
    records.sort_by_key(|it| it.id);
    let mut source = "crate::stored::metadata_record::metadata_records! {\n".to_owned();
    for it in records {
        let variant = it.name.trim_end_matches("Record");
        let id = it.id.unwrap_or_default();
        source += &format!(
            "    {id} {variant}({})\n        \"{}\";\n",
            it.name,
            names::dump_type(&it.name)
        );
    }
    source + "}\n"
}

/// The enums of the records of each coordinator.
fn coordinator(messages: &[Message]) -> String {
    let mut source = String::new();
    for (family, log) in [
        ("GroupRecord", "__consumer_offsets"),
        ("TransactionRecord", "__transaction_state"),
        ("ShareRecord", "__share_group_state"),
    ] {
        let mut keys: Vec<&Message> = messages
            .iter()
            .filter(|it| it.kind == Kind::CoordinatorKey && family_of(&it.name) == family)
            .collect();
        if keys.is_empty() {
            continue;
        }
        keys.sort_by_key(|it| it.id);
        source += &format!(
            "\ncrate::stored::coordinator_record::coordinator_records! {{\n    \
             /// A record of `{log}`: a key, and a value or a tombstone.\n    {family}\n"
        );
        for key in keys {
            let variant = key.name.trim_end_matches("Key");
            let id = key.id.unwrap_or_default();
            source += &format!(
                "    {id} {variant}\n        ({}, {variant}Value);\n",
                key.name
            );
        }
        source += "}\n";
    }
    source
}

/// The enum that the key `name` belongs to.
fn family_of(name: &str) -> &'static str {
    match name {
        "TransactionLogKey" => "TransactionRecord",
        "ShareSnapshotKey" | "ShareUpdateKey" => "ShareRecord",
        _ => "GroupRecord",
    }
}
