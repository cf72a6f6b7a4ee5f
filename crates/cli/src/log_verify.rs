use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use highwater_disk::{Blocking, FileDisk};
use highwater_log::verify::{VerifyFinding, VerifyReport, verify};

use crate::args::Output;
use crate::output::{self, Table};

/// `log verify DIR...`: exit code 1 when something is wrong that no stop explains.
pub(crate) fn run(dirs: &[PathBuf], output: Output) -> anyhow::Result<()> {
    let disks: anyhow::Result<Vec<FileDisk>> = dirs
        .iter()
        .map(|dir| {
            let opened = FileDisk::open(dir);
            opened.with_context(|| format!("cannot check {}: give a log directory", dir.display()))
        })
        .collect();
    let report = verify(&disks?, &Blocking::enter(), &show_progress)?;
    if io::stderr().is_terminal() {
        let _unseen = write!(io::stderr(), "\r\x1b[K");
    }
    print(&report, output)?;
    if report.has_damage() {
        let found = report.findings.len();
        bail!("{found} findings: the table says of each what a broker would do about it");
    }
    Ok(())
}

fn print(report: &VerifyReport, output: Output) -> anyhow::Result<()> {
    let mut out = output::stdout();
    match output {
        Output::Json => writeln!(out, "{}", report.to_json())?,
        Output::Table => {
            if !report.findings.is_empty() {
                let mut table = Table::new(&VerifyFinding::COLUMNS);
                for finding in &report.findings {
                    table.push(finding.row().into_iter().map(Into::into).collect());
                }
                table.write_text(&mut out)?;
                writeln!(out)?;
            }
            let VerifyReport {
                logs,
                segments,
                batches,
                bytes,
                ..
            } = report;
            let found = report.findings.len();
            writeln!(
                out,
                "{logs} logs, {segments} segments, {batches} batches, {bytes} bytes: \
                 {found} findings"
            )?;
        }
    }
    out.flush()?;
    Ok(())
}

/// A line that people watch; programs get none.
fn show_progress(bytes: u64) {
    if io::stderr().is_terminal() {
        let _unseen = write!(io::stderr(), "\r{} MiB read", bytes >> 20);
    }
}
