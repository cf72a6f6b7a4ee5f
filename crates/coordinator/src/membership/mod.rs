//! What members do: join, sync, heartbeat, leave; and what their silence does.
