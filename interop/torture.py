"""The witness of a torture round: librdkafka writes to a topic, reads along, reads it all again.

Writes numbers to each partition with acks=all and idempotence, and follows every partition from its
start, until `stop` comes on standard input. Then what is on its way is awaited, the follower reads
up to the high watermark, and a fresh consumer reads everything. With `--only-read` there is only
that last part. What happens is told on standard output, a line each; who started this judges it:

    acked PARTITION OFFSET NUMBER      a delivery report without an error; offset -1: not told
    failed PARTITION NUMBER ERROR      a delivery report with one
    followed PARTITION OFFSET EPOCH VALUE
    stopped SENT LEFT                  the writer is done; LEFT records have no report
    read PARTITION OFFSET EPOCH VALUE
    done
"""

import argparse
import sys
import threading
import time

import confluent_kafka as ck

PATIENCE = 60
PADDING = "highwater " * 8


def tell(*words):
    """One line for who judges."""
    sys.stdout.write(" ".join(str(word) for word in words) + "\n")


def complain(what):
    """Something that happens on the way, for who looks into a failure."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def client(kind, options, **more):
    """A client that leaves a broker that stands still soon, for the others."""
    return kind(
        {
            "bootstrap.servers": options.bootstrap,
            "socket.timeout.ms": 2500,
            "reconnect.backoff.max.ms": 500,
            "topic.metadata.refresh.interval.ms": 500,
            "topic.metadata.refresh.fast.interval.ms": 100,
            "error_cb": lambda error: complain(f"{kind.__name__}: {error}"),
            **more,
        }
    )


class Writer(threading.Thread):
    """Numbers to each partition, in order."""

    def __init__(self, options):
        super().__init__(daemon=True)
        self.options = options
        self.stopping = threading.Event()
        self.left = None
        self.sent = 0
        self.why = None

    def run(self):
        try:
            self.write()
        except Exception as why:  # noqa: BLE001 (told by the main thread, whatever it is)
            self.why = why

    def write(self):
        """Until told to stop; then until all are reported."""
        producer = client(
            ck.Producer,
            self.options,
            **{
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 3,
                "request.timeout.ms": 1500,
                "message.timeout.ms": PATIENCE * 1000,
                "retry.backoff.ms": 50,
                # Why it ever gives a producer epoch up.
                "debug": "eos",
            },
        )

        def delivered(partition, number):
            def note(error, message):
                if error is None:
                    # None where the broker said only that it has the record already.
                    offset = message.offset()
                    tell("acked", partition, -1 if offset is None else offset, number)
                else:
                    tell("failed", partition, number, error)

            return note

        number = 0
        start = time.monotonic()
        while not self.stopping.is_set():
            for partition in range(self.options.partitions):
                producer.produce(
                    self.options.topic,
                    f"{number}:{PADDING}",
                    partition=partition,
                    on_delivery=delivered(partition, number),
                )
                self.sent += 1
            number += 1
            producer.poll(0)
            sys.stdout.flush()
            ahead = start + number / self.options.rate - time.monotonic()
            if ahead > 0:
                producer.poll(ahead)
        self.left = producer.flush(PATIENCE)


class Reader:
    """Every record of the topic, from its start."""

    def __init__(self, options, word):
        self.options, self.word = options, word
        self.at = [0] * options.partitions
        self.consumer = client(
            ck.Consumer,
            options,
            **{
                "group.id": "unused",
                "enable.auto.commit": False,
                # Nothing may be out of range: a reader that starts anew would hide it.
                "auto.offset.reset": "error",
                "check.crcs": True,
                "fetch.wait.max.ms": 100,
                "fetch.error.backoff.ms": 50,
            },
        )
        partitions = [ck.TopicPartition(options.topic, it, 0) for it in range(options.partitions)]
        self.consumer.assign(partitions)

    def poll(self, seconds):
        """Tells what has come."""
        for message in self.consumer.consume(500, seconds):
            if message.error() is None:
                partition, offset = message.partition(), message.offset()
                value = message.value().decode().split(":")[0]
                tell(self.word, partition, offset, message.leader_epoch(), value)
                self.at[partition] = offset + 1
            elif message.error().retriable():
                complain(f"{self.word}: {message.error()}")
            else:
                where = f"{self.word} partition {message.partition()}"
                raise RuntimeError(f"{where}: {message.error()}")

    def finish(self):
        """Reads up to what is readable now."""
        ends = [self.end_of(partition) for partition in range(self.options.partitions)]
        deadline = time.monotonic() + PATIENCE
        while any(at < end for at, end in zip(self.at, ends)):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.word}: at {self.at} of {ends} after {PATIENCE} s")
            self.poll(0.2)
        self.consumer.close()

    def end_of(self, partition):
        """The high watermark, as the leader tells it."""
        deadline = time.monotonic() + PATIENCE
        at = ck.TopicPartition(self.options.topic, partition)
        while True:
            try:
                return self.consumer.get_watermark_offsets(at, timeout=5)[1]
            except ck.KafkaException as why:
                if time.monotonic() > deadline:
                    raise
                complain(f"end of {partition}: {why}")
                time.sleep(0.1)


def wait_for_stop(stop):
    """The one command."""
    for line in sys.stdin:
        if line.strip() == "stop":
            break
    stop.set()


def round_of(options):
    """Writes and reads along."""
    writer, follower = Writer(options), Reader(options, "followed")
    stop = threading.Event()
    threading.Thread(target=wait_for_stop, args=(stop,), daemon=True).start()
    writer.start()
    while not stop.is_set():
        follower.poll(0.05)
    writer.stopping.set()
    while writer.is_alive():
        follower.poll(0.05)
    if writer.why is not None:
        raise writer.why
    tell("stopped", writer.sent, writer.left)
    follower.finish()


def main():
    """One topic."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--rate", type=float, default=250, help="records a second and partition")
    parser.add_argument("--only-read", action="store_true")
    options = parser.parse_args()
    if not options.only_read:
        round_of(options)
    Reader(options, "read").finish()
    tell("done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
