"""What the questions of interop/differences.py share: names, ids, and the known differences."""

import uuid

PROPERTIES = """\
num.partitions=2
max.incremental.fetch.session.cache.slots=100
log.message.timestamp.after.max.ms=9223372036854775807
"""

# Differences on purpose: the request's name, and why.
KNOWN = {
    "one byte more": "a batch with stray bytes after it is refused, not cut",
    "record deltas 0 0": "two records of one offset are refused",
    "record delta 1 first": "records out of order are refused",
    "batch length 2^31-1": "a cut batch is one (87), not a server's error",
    "codec 5": "an unknown codec is said to be one (76), not a server's error",
    "codec 7": "an unknown codec is said to be one (76), not a server's error",
    "codec said, not done": "a batch that cannot be unpacked is corrupt (2), not a server's error",
    "gzip cut": "a batch that cannot be unpacked is corrupt (2), not a server's error",
    "again 4": "older than the batches remembered: DUPLICATE_SEQUENCE_NUMBER, so that the client "
    "takes it as written; Kafka says OUT_OF_ORDER_SEQUENCE_NUMBER",
    "again 0": "as before",
    "id zero name None": "a topic without name and id is refused; Kafka fails the whole answer",
    "name ''": "the empty name is an invalid name; Kafka fails the whole answer",
    "partition twice": "both are answered; Kafka keeps the later one",
    "partition bytes -1": "as 0; Kafka fails",
    "bytes -1": "as 0; Kafka fails",
    "a count below -1": "a broken frame; Kafka takes it as null",
    "zstd for the old": "the gzip libraries are not the same",
    "type 16 name 'm'": "client metrics come later",
    "type 32 name 'g'": "configs of groups come later",
    "a transaction's": "coordinators of transactions come later: a clear error at once",
    "what refused joins leave": "nothing; Kafka makes an empty group for each",
    "a group of offsets alone": "is gone with the last of them; Kafka keeps it until it looks for "
    "old offsets, or loads again",
    "a share group's": "coordinators of share groups come later: a clear error at once",
}
CLUSTER = "5L6g3nShT-eMCtK--X86sw"
FEATURES = {
    "group.version": 1,
    "share.version": 2,
    "streams.version": 1,
    "transaction.version": 2,
    "eligible.leader.replicas.version": 1,
}
UNKNOWN_ID = uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")
ZERO_ID = uuid.UUID(int=0)
BAD_NAMES = ["", ".", "..", "bad name!", "a" * 250, "sl/ash"]


def show(topic):
    """An id for people."""
    if topic == UNKNOWN_ID:
        return "unknown"
    return "zero" if topic == ZERO_ID else f"of {topic.name}"
