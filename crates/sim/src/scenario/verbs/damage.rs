//! Verbs that damage the files of a node that does not run. A file is named by its path within
//! its log directory; `dir=0` says which.

use std::io::IoSlice;
use std::path::Path;

use highwater_disk::{Blocking, Disk as _, DiskFile as _, MemDisk, OpenMode};

use super::{Command, NODE, ScriptError};
use crate::world::World;

/// `overwrite orders-0/00000000000000000000.log at=-10 bytes=32 with=0xde`: `at` below zero
/// counts from the end; bytes beyond the end are appended.
pub(super) fn overwrite(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    with_file(world, command, |file, length| {
        let at = command.setting("at", 0_i64)?;
        let at = if at < 0 {
            length.saturating_sub(at.unsigned_abs())
        } else {
            at.unsigned_abs()
        };
        let count = command.setting("bytes", 1_usize)?;
        let with = command.setting("with", "0xff".to_owned())?;
        let byte = u8::from_str_radix(with.trim_start_matches("0x"), 16);
        let byte = byte.map_err(|_| ScriptError(format!("with={with} is no byte")))?;
        let bytes = vec![byte; count];
        file.write_at(at, &[IoSlice::new(&bytes)])
            .map_err(|why| ScriptError(why.to_string()))
    })
}

/// `write recovery-point-offset-checkpoint 0|1|orders 0 800`: a whole text file, `|` for a new
/// line.
pub(super) fn write(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let disk = disk(world, command)?;
    let path = command.word(0, "a file")?;
    let text = command
        .words
        .get(1..)
        .unwrap_or_default()
        .join(" ")
        .replace('|', "\n")
        + "\n";
    let replaced = disk.replace(Path::new(path), text.as_bytes(), &Blocking::enter());
    world.tell(format!("write {path}"));
    replaced.map_err(|why| ScriptError(why.to_string()))
}

/// `shorten orders-0/00000000000000000000.log by=10`, or `to=0`.
pub(super) fn shorten(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    with_file(world, command, |file, length| {
        let by = command.setting("by", 0_u64)?;
        let to = command.setting("to", length.saturating_sub(by))?;
        file.set_len(to).map_err(|why| ScriptError(why.to_string()))
    })
}

/// `remove orders-0/00000000000000000000.index`.
pub(super) fn remove(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let disk = disk(world, command)?;
    let path = command.word(0, "a file")?;
    let removed = disk.remove(Path::new(path), &Blocking::enter());
    disk.write_back();
    world.tell(format!("remove {path}"));
    removed.map_err(|why| ScriptError(why.to_string()))
}

fn with_file(
    world: &mut World,
    command: &Command,
    act: impl FnOnce(&<MemDisk as highwater_disk::Disk>::File, u64) -> Result<(), ScriptError>,
) -> Result<(), ScriptError> {
    let disk = disk(world, command)?;
    let path = command.word(0, "a file")?;
    let file = disk.open(Path::new(path), OpenMode::Create);
    let file = file.map_err(|why| ScriptError(why.to_string()))?;
    let length = file.len().map_err(|why| ScriptError(why.to_string()))?;
    act(&file, length)?;
    disk.write_back();
    world.tell(format!("{} {path}", command.verb));
    Ok(())
}

fn disk(world: &mut World, command: &Command) -> Result<MemDisk, ScriptError> {
    if world.runs(NODE) {
        return Err(ScriptError(
            "only the files of a node that does not run are damaged".into(),
        ));
    }
    world.checker.files_were_damaged(NODE);
    let at = command.setting("dir", 0_usize)?;
    let disk = world.node(NODE).disks.get(at).map(MemDisk::session);
    disk.ok_or_else(|| ScriptError(format!("there is no log directory {at}")))
}
