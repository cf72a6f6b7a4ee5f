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

use super::{RETAINED_BYTES, SEGMENT_BYTES, TOPIC, batch, load, wire};

const PRODUCE: i16 = 0;
/// Bytes of a fetch answer's records, before they are cut to whole batches.
const FETCH_BYTES: usize = 1 << 20;

/// Serves until killed. `arguments`: the directory of its files. Prints its port.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [folder] = arguments else {
        anyhow::bail!("usage: xtask floor DIR")
    };
    let mut ring = Ring::create(Path::new(folder))?;
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?.port())?;
    for stream in listener.incoming() {
        // The load opens one connection at a time; its end is no error.
        serve(&stream?, &mut ring).ok();
    }
    Ok(())
}

/// Files that are written one after the other and then cut and written anew, as the segments of a
/// log with retention.
struct Ring {
    files: Vec<File>,
    /// The file that is written.
    newest: usize,
    /// Bytes in it.
    end: u64,
}

impl Ring {
    fn create(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let mut files = Vec::new();
        for number in 0..RETAINED_BYTES / SEGMENT_BYTES {
            let mut options = File::options();
            options.create(true).truncate(true).read(true).write(true);
            files.push(options.open(folder.join(format!("floor-{number}.log")))?);
        }
        Ok(Self {
            files,
            newest: 0,
            end: 0,
        })
    }

    fn file(&self, at: usize) -> Result<&File> {
        self.files.get(at).context("no such file")
    }

    fn append(&mut self, batch: &[u8]) -> Result<()> {
        if self.end + batch.len() as u64 > SEGMENT_BYTES as u64 {
            self.newest = self.after(self.newest);
            self.end = 0;
            self.file(self.newest)?.set_len(0)?;
        }
        self.file(self.newest)?.write_all_at(batch, self.end)?;
        self.end += batch.len() as u64;
        Ok(())
    }

    const fn after(&self, at: usize) -> usize {
        (at + 1) % self.files.len()
    }
}

fn serve(mut stream: &TcpStream, ring: &mut Ring) -> Result<()> {
    stream.set_nodelay(true)?;
    load::unpace(stream);
    let batch_bytes = batch::large().len();
    let records = FETCH_BYTES / batch_bytes * batch_bytes;
    let (produce_answer, fetch_head) = (produce_answer(), fetch_head(records));
    let mut frame = Vec::new();
    // Full files, not the one that is written.
    let (mut read, mut position) = (ring.after(ring.newest), 0);
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        frame.resize(usize::try_from(i32::from_be_bytes(length))?, 0);
        stream.read_exact(&mut frame)?;
        let key = frame.get(..2).context("short frame")?;
        if i16::from_be_bytes(key.try_into()?) == PRODUCE {
            let batch = frame.get(wire::produce_batch_at(TOPIC)..);
            let batch = batch.context("short frame")?;
            let crc = batch.get(17..21).context("short batch")?;
            let checked = batch.get(21..).context("short batch")?;
            ensure!(crc32c::crc32c(checked).to_be_bytes() == crc, "bad CRC");
            ring.append(batch)?;
            stream.write_all(&produce_answer)?;
        } else {
            if position + records > SEGMENT_BYTES {
                read = ring.after(read);
                if read == ring.newest {
                    read = ring.after(read);
                }
                position = 0;
            }
            stream.write_all(&fetch_head)?;
            send_file(stream, ring.file(read)?, position as u64, records)?;
            position += records;
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
