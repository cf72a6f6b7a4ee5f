//! `group list|describe|reset|delete`.

mod delete;
mod describe;
mod list;
mod reset;
mod selection;
mod shown;
mod targets;

use anyhow::anyhow;
use highwater_client::{ClientError, GroupDescription};
use highwater_types::ErrorCode;

use super::block_on;
use crate::args::Output;
use crate::group_args::GroupCommand;

/// `group list|describe|reset|delete`.
pub(crate) fn run(command: GroupCommand, output: Output) -> anyhow::Result<()> {
    match command {
        GroupCommand::List { state, at } => block_on(list::list(&state, &at, output)),
        GroupCommand::Describe(args) => block_on(describe::describe(&args, output)),
        GroupCommand::Reset(args) => {
            let plan = reset::Plan::of(&args)?;
            block_on(reset::reset(&args, &plan, output))
        }
        GroupCommand::Delete { groups, topic, at } => {
            let selected = selection::parse(&topic)?;
            block_on(delete::delete(&groups, &selected, &at, output))
        }
    }
}

/// That a group cannot be touched, with whom to stop.
fn has_members(group: &GroupDescription) -> anyhow::Error {
    const NAMED_MAX: usize = 5;
    let named = group.members.iter().take(NAMED_MAX).map(|member| {
        format!(
            "{} (client {} at {})",
            member.member_id,
            member.client_id,
            member.client_host.trim_start_matches('/')
        )
    });
    let mut named: Vec<String> = named.collect();
    if let Some(more) = group
        .members
        .len()
        .checked_sub(NAMED_MAX)
        .filter(|it| *it > 0)
    {
        named.push(format!("{more} more"));
    }
    let count = match group.members.len() {
        1 => "a live member".to_owned(),
        count => format!("{count} live members"),
    };
    anyhow!(
        "group {} has {count}: {}; stop them first",
        group.group_id,
        named.join(", ")
    )
}

/// An error of the library, without its advice where a command has better.
fn in_words(group_id: &str, why: ClientError) -> anyhow::Error {
    match &why {
        // Groups of newer protocols exist, but this API knows nothing of them (KIP-1043).
        ClientError::Refused {
            code: ErrorCode::GROUP_ID_NOT_FOUND,
            message: Some(message),
            ..
        } if message.contains("not a classic group") => anyhow!(
            "group {group_id} is not one of the classic protocol, and only those can be looked \
             at; `highwater group list` shows its type and state"
        ),
        ClientError::Refused {
            code: ErrorCode::GROUP_ID_NOT_FOUND,
            ..
        } => anyhow!(
            "there is no group {group_id}; `highwater group list` shows what groups there are"
        ),
        _ => why.into(),
    }
}
