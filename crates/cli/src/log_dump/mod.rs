//! `log dump`: prints what Kafka's DumpLogSegments prints, as text or as one JSON object per line.

mod batches;
mod decode;
mod fields;
mod index;
mod problems;
mod state_files;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::Path;

use anyhow::{Context as _, bail};

pub(crate) use self::decode::Decoder;
use self::fields::Printer;
use self::problems::Problems;

/// How files are dumped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DumpOptions {
    /// Print each record, not only each batch.
    pub(crate) deep: bool,
    /// Print keys and values.
    pub(crate) contents: bool,
    /// Print offsets, sizes and the rest of each record.
    pub(crate) record_metadata: bool,
    /// How keys and values are read.
    pub(crate) decoder: Decoder,
    /// One JSON object per line instead of text.
    pub(crate) json: bool,
}

/// Dumps `files`, then everything that does not fit together in them.
///
/// # Errors
/// When a file cannot be read, has a name of no known kind, or holds bytes of no sense.
pub(crate) fn dump(
    files: &[impl AsRef<Path>],
    options: DumpOptions,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut printer = Printer::new(out, options.json);
    let mut problems = Problems::default();
    for path in files {
        let path = path.as_ref();
        dump_one(
            path,
            &path.display().to_string(),
            options,
            &mut printer,
            &mut problems,
        )?;
    }
    problems.print(&mut printer)
}

/// Dumps one file under `name`.
fn dump_one(
    path: &Path,
    name: &str,
    options: DumpOptions,
    printer: &mut Printer<'_>,
    problems: &mut Problems,
) -> anyhow::Result<()> {
    printer.file(name)?;
    dump_file(path, name, options, printer, problems)
}

fn dump_file(
    path: &Path,
    name: &str,
    options: DumpOptions,
    printer: &mut Printer<'_>,
    problems: &mut Problems,
) -> anyhow::Result<()> {
    let file_name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    // What a server renamed for deletion is dumped as what it was.
    let kind = file_name
        .trim_end_matches(".deleted")
        .rsplit_once('.')
        .map(|(_, kind)| kind);
    match kind {
        Some("log") => {
            let base = base_offset(file_name)?;
            printer.note(&format!("Log starting offset: {base}"), "startOffset", base)?;
            batches::dump(open(path)?, name, options, printer, problems)
        }
        Some("checkpoint") if snapshot_id(file_name).is_some() => {
            let (offset, epoch) = snapshot_id(file_name).unwrap_or_default();
            let text = format!("Snapshot end offset: {offset}, epoch: {epoch}");
            printer.note(&text, "snapshotEndOffset", offset)?;
            batches::dump(open(path)?, name, options, printer, problems)
        }
        Some("index") => {
            index::dump_offsets(path, name, base_offset(file_name)?, printer, problems)
        }
        Some("timeindex") => {
            index::dump_times(path, name, base_offset(file_name)?, printer, problems)
        }
        Some("snapshot") => state_files::dump_producers(&read(path)?, name, printer),
        Some("txnindex") => state_files::dump_transactions(&read(path)?, name, printer),
        _ if file_name.ends_with("-checkpoint") => {
            state_files::dump_checkpoint(&read(path)?, name, printer)
        }
        _ => bail!(
            "{name}: not the name of a file of a log directory; give .log, .index, .timeindex, \
             .snapshot, .txnindex, .checkpoint or *-checkpoint files"
        ),
    }
}

/// The offset in the name of a segment's file.
fn base_offset(file_name: &str) -> anyhow::Result<i64> {
    let digits = file_name.split('.').next().unwrap_or_default();
    digits.parse().with_context(|| {
        format!("{file_name}: the name has to begin with the segment's base offset of 20 digits")
    })
}

/// End offset and epoch in the name of a metadata snapshot.
fn snapshot_id(file_name: &str) -> Option<(i64, i32)> {
    let (offset, epoch) = file_name.split('.').next()?.split_once('-')?;
    Some((offset.parse().ok()?, epoch.parse().ok()?))
}

fn open(path: &Path) -> anyhow::Result<BufReader<File>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    Ok(BufReader::with_capacity(128 * 1024, file))
}

/// Reads a small file whole.
fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let whole: io::Result<Vec<u8>> = std::fs::read(path);
    whole.with_context(|| format!("cannot read {}", path.display()))
}
