use serde_json::{Value, json};

use crate::args::{Bootstrap, Output};
use crate::client_commands::connect;
use crate::output::Table;

/// `group list`.
pub(super) async fn list(states: &[String], at: &Bootstrap, output: Output) -> anyhow::Result<()> {
    let client = connect(at).await?;
    let mut table = Table::new(&["group", "state", "type", "protocol-type", "coordinator"]);
    for group in client.list_groups(states).await? {
        let text = |text: Option<String>| text.map_or(Value::Null, |it| json!(it));
        table.push(vec![
            json!(group.group_id),
            text(group.state),
            text(group.group_type),
            text(Some(group.protocol_type).filter(|it| !it.is_empty())),
            json!(group.coordinator.raw()),
        ]);
    }
    table.print(output)
}
