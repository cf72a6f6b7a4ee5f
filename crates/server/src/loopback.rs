use highwater_disk::FileFile;
use highwater_node::{ConnId, ConnOutput};

use crate::conn::Conn;
use crate::mailbox::Loopback;

/// Control's connection to itself.
#[derive(Debug, Default)]
pub(crate) struct LoopbackHost {}
