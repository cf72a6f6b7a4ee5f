"""Record batches by hand, good and bad."""

import gzip
import struct

_TABLE = []
for _byte in range(256):
    for _ in range(8):
        _byte = _byte >> 1 ^ (0x82F63B78 if _byte & 1 else 0)
    _TABLE.append(_byte)


def crc32c(data):
    """CRC-32C."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def varint(value):
    """Zigzag, seven bits a byte."""
    value = value << 1 ^ value >> 63
    out = bytearray()
    value &= (1 << 64) - 1
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def sized(data):
    """A nullable byte string of a record."""
    return varint(-1) if data is None else varint(len(data)) + data


def record(delta, timestamp_delta=0, key=b"k", value=b"v", headers=()):
    """One record with its length."""
    body = b"\0" + varint(timestamp_delta) + varint(delta) + sized(key) + sized(value)
    body += varint(len(headers))
    for name, content in headers:
        body += sized(name) + sized(content)
    return varint(len(body)) + body


def batch(
    records=None,
    count=None,
    base_offset=0,
    leader_epoch=-1,
    magic=2,
    attributes=0,
    last_delta=None,
    base_timestamp=1_700_000_000_000,
    max_timestamp=None,
    producer_id=-1,
    producer_epoch=-1,
    sequence=-1,
    bad_crc=False,
    codec=0,
    values=1,
):
    """A batch; everything may be set wrong."""
    if records is None:
        parts = [record(at, at * 1000, b"key-%d" % at, b"value-%d" % at) for at in range(values)]
        count = values if count is None else count
        records = b"".join(parts)
        if max_timestamp is None:
            max_timestamp = base_timestamp + 1000 * (values - 1)
    if codec == 1:
        records = gzip.compress(records, mtime=0)
    count = 1 if count is None else count
    last_delta = count - 1 if last_delta is None else last_delta
    max_timestamp = base_timestamp if max_timestamp is None else max_timestamp
    body = struct.pack(
        ">hiqqqhii",
        attributes | codec,
        last_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        sequence,
        count,
    )
    body += records
    crc = crc32c(body) ^ (1 if bad_crc else 0)
    rest = struct.pack(">ibI", leader_epoch, magic, crc) + body
    return struct.pack(">qi", base_offset, len(rest)) + rest
