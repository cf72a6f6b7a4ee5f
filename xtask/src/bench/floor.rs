//! The floor: the least that any server must do for the same bytes over the same sockets.
//!
//! Produce: receive a frame, CRC-32C over the batch, `pwrite`. Fetch: a few header bytes and
//! `sendfile`. It answers in Kafka's shape, so that the same load drives it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::{TOPIC, batch, wire};

const PRODUCE: i16 = 0;
/// Bytes of a fetch answer's records.
const FETCH_BYTES: usize = 1 << 20;

/// Serves until killed. `arguments`: the directory of its one file. Prints its port.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [folder] = arguments else {
        anyhow::bail!("usage: xtask floor DIR")
    };
    std::fs::create_dir_all(folder)?;
    let path = Path::new(folder).join("floor.log");
    let file = File::options()
        .create(true)
        .truncate(true)
        .read(true)
        .write(true)
        .open(path)?;
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?.port())?;
    let mut end = 0;
    for stream in listener.incoming() {
        // The load opens one connection at a time; its end is no error.
        serve(&stream?, &file, &mut end).ok();
    }
    Ok(())
}

fn serve(mut stream: &TcpStream, file: &File, end: &mut u64) -> Result<()> {
    stream.set_nodelay(true)?;
    let batch_bytes = batch::large().len();
    let mut frame = Vec::new();
    let produce_answer = produce_answer();
    let mut position = 0;
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        frame.resize(usize::try_from(i32::from_be_bytes(length))?, 0);
        stream.read_exact(&mut frame)?;
        let key = frame.get(..2).context("short frame")?;
        if i16::from_be_bytes(key.try_into()?) == PRODUCE {
            let at = frame
                .len()
                .checked_sub(batch_bytes)
                .context("short frame")?;
            let batch = frame.get(at..).context("short frame")?;
            let crc = batch.get(17..21).context("short batch")?;
            let checked = batch.get(21..).context("short batch")?;
            ensure!(crc32c::crc32c(checked).to_be_bytes() == crc, "bad CRC");
            file.write_all_at(batch, *end)?;
            *end += batch.len() as u64;
            stream.write_all(&produce_answer)?;
        } else {
            let records = FETCH_BYTES / batch_bytes * batch_bytes;
            if position + records as u64 > *end {
                position = 0;
            }
            stream.write_all(&fetch_head(records))?;
            send_file(stream, file, position, records)?;
            position += records as u64;
        }
    }
}

fn send_file(stream: &TcpStream, file: &File, position: u64, length: usize) -> Result<()> {
    let (mut position, mut left) = (position, length);
    while left > 0 {
        let sent = rustix::fs::sendfile(stream, file, Some(&mut position), left)?;
        ensure!(sent > 0, "the file is too short");
        left -= sent;
    }
    Ok(())
}

fn produce_answer() -> Vec<u8> {
    let length = wire::produce_error_at(TOPIC) + 2 + 8 + 8 + 8 + 4;
    let mut answer = i32::try_from(length).unwrap_or(0).to_be_bytes().to_vec();
    answer.resize(4 + length, 0);
    answer
}

fn fetch_head(records: usize) -> Vec<u8> {
    let (_, records_at) = wire::fetch_parts_at(TOPIC);
    let length = i32::try_from(records_at + 4 + records).unwrap_or(0);
    let mut head = length.to_be_bytes().to_vec();
    head.resize(4 + records_at, 0);
    head.extend_from_slice(&i32::try_from(records).unwrap_or(0).to_be_bytes());
    head
}
