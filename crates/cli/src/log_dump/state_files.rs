use anyhow::bail;
use serde_json::Value;

use super::fields::{Fields, Printer};

/// Bytes of a producer snapshot before its entries: version, CRC, count.
const SNAPSHOT_HEADER_BYTES: usize = 10;
const PRODUCER_BYTES: usize = 46;
const ABORTED_BYTES: usize = 34;

/// Dumps a producer snapshot, in the file's order.
pub(super) fn dump_producers(
    bytes: &[u8],
    name: &str,
    printer: &mut Printer<'_>,
) -> anyhow::Result<()> {
    let Some((header, entries)) = bytes.split_at_checked(SNAPSHOT_HEADER_BYTES) else {
        bail!("{name}: {} bytes are no producer snapshot", bytes.len());
    };
    let mut header = Numbers(header);
    let (version, crc) = (header.i16(), header.u32());
    if version != 1 {
        bail!("{name}: a producer snapshot of version {version}; this build reads version 1");
    }
    let computed = crc32c::crc32c(bytes.get(6..).unwrap_or_default());
    if crc != computed {
        bail!("{name}: the checksum is {crc:#010x}, the bytes have {computed:#010x}");
    }
    for entry in entries.chunks_exact(PRODUCER_BYTES) {
        let mut numbers = Numbers(entry);
        let (producer_id, producer_epoch) = (numbers.i64(), numbers.i16());
        let (last_sequence, last_offset) = (numbers.i32(), numbers.i64());
        let (offset_delta, timestamp) = (numbers.i32(), numbers.i64());
        let (coordinator_epoch, first_offset) = (numbers.i32(), numbers.i64());
        let mut fields = Fields::default();
        fields
            .put("producerId", producer_id)
            .put("producerEpoch", producer_epoch)
            .put("coordinatorEpoch", coordinator_epoch);
        if first_offset < 0 {
            fields.put_as("currentTxnFirstOffset", "OptionalLong.empty", Value::Null);
        } else {
            let text = format!("OptionalLong[{first_offset}]");
            fields.put_as("currentTxnFirstOffset", &text, first_offset.into());
        }
        fields.put("lastTimestamp", timestamp);
        if last_offset >= 0 {
            fields
                .put(
                    "firstSequence",
                    sequence_before(last_sequence, offset_delta),
                )
                .put("lastSequence", last_sequence)
                .put("lastOffset", last_offset)
                .put("offsetDelta", offset_delta)
                .put("timestamp", timestamp);
        }
        printer.entry("producer", "", fields)?;
    }
    Ok(())
}

/// Dumps a transaction index.
pub(super) fn dump_transactions(
    bytes: &[u8],
    name: &str,
    printer: &mut Printer<'_>,
) -> anyhow::Result<()> {
    for entry in bytes.chunks_exact(ABORTED_BYTES) {
        let mut numbers = Numbers(entry);
        let mut fields = Fields::default();
        fields
            .put("version", numbers.i16())
            .put("producerId", numbers.i64())
            .put("firstOffset", numbers.i64())
            .put("lastOffset", numbers.i64())
            .put("lastStableOffset", numbers.i64());
        printer.entry("abortedTransaction", "", fields)?;
    }
    let rest = bytes.len() % ABORTED_BYTES;
    if rest > 0 {
        bail!("{name}: {rest} bytes at the end are no whole entry");
    }
    Ok(())
}

/// Dumps a checkpoint of text: leader epochs, or an offset per partition.
pub(super) fn dump_checkpoint(
    bytes: &[u8],
    name: &str,
    printer: &mut Printer<'_>,
) -> anyhow::Result<()> {
    let text = String::from_utf8_lossy(bytes);
    // Version and count stand first; a fresh file is empty.
    for line in text.lines().skip(2) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut fields = Fields::default();
        match words.as_slice() {
            [epoch, start] => fields.put("epoch", *epoch).put("startOffset", *start),
            [topic, partition, offset] => fields
                .put("topic", *topic)
                .put("partition", *partition)
                .put("offset", *offset),
            _ => bail!("{name}: not a line of a checkpoint: {line}"),
        };
        printer.entry("checkpoint", "", fields)?;
    }
    Ok(())
}

/// The sequence `delta` before `last`, in the ring of non-negative sequences.
const fn sequence_before(last: i32, delta: i32) -> i32 {
    if last < delta {
        i32::MAX - (delta - last) + 1
    } else {
        last - delta
    }
}

/// Big-endian numbers of an entry whose length was checked.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self
            .0
            .split_first_chunk()
            .expect("entries are cut to their length");
        self.0 = rest;
        *taken
    }

    fn i16(&mut self) -> i16 {
        i16::from_be_bytes(self.take())
    }

    fn i32(&mut self) -> i32 {
        i32::from_be_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take())
    }

    fn i64(&mut self) -> i64 {
        i64::from_be_bytes(self.take())
    }
}
