"""End to end with librdkafka: kill -9 in the middle loses nothing and doubles nothing.

For each codec and round: a fresh node (of one and of two shards by turns), an idempotent
producer, a kill -9 once a third of the records is acknowledged, a restart on the same port and
directory; then every record must be read back once, in order. Prints a line a round and
'N passed, N failed' at the end.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
TOPIC = "records"


class Node:
    """One highwater process, ended by its id."""

    def __init__(self, binary, data, port=0, shards=1):
        self.shards = shards
        self.log = open(os.path.join(data, "..", "node.log"), "ab")
        self.process = subprocess.Popen(
            [
                *(binary, "start", "--data", data, "--listen", f"127.0.0.1:{port}"),
                *("--set", f"num.shards={shards}"),
            ],
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        line = self.process.stdout.readline()
        if not line.startswith("highwater ready "):
            raise RuntimeError(f"no ready line but {line!r}")
        self.bootstrap = line.split("bootstrap=")[1].split()[0]
        self.port = int(self.bootstrap.rsplit(":", 1)[1])

    def kill(self):
        """Ends the process as a crash does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """Ends the process as an operator does; any exit code but 0 is a failure."""
        self.process.terminate()
        code = self.process.wait(timeout=30)
        if code != 0:
            raise RuntimeError(f"exit code {code} after SIGTERM")


def payload(number):
    """A record that names its number and compresses a little."""
    return b"%08d:" % number + b"highwater " * 20


def produce(binary, data, node, codec, count):
    """Produces `count` records with one kill -9; gives the node that serves at the end."""
    acknowledged = []
    failed = []

    def delivered(error, message):
        if error is None:
            acknowledged.append(int(message.value()[:8]))
        else:
            failed.append(str(error))

    producer = ck.Producer(
        {
            "bootstrap.servers": node.bootstrap,
            "enable.idempotence": True,
            "compression.type": codec,
            "linger.ms": 2,
            "batch.num.messages": 250,
            "message.timeout.ms": 60000,
            "reconnect.backoff.max.ms": 500,
        }
    )
    killed = False
    for number in range(count):
        while True:
            try:
                producer.produce(TOPIC, payload(number), partition=0, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
        if not killed and len(acknowledged) >= count // 3:
            node.kill()
            killed = True
            node = Node(binary, data, node.port, node.shards)
    if not killed:
        producer.poll(0.05)
        node.kill()
        node = Node(binary, data, node.port, node.shards)
    left = producer.flush(60)
    if left or failed:
        raise RuntimeError(f"{left} records not delivered, failures: {failed[:3]}")
    if acknowledged != list(range(count)):
        raise RuntimeError("acknowledgements are not in order")
    return node


def read_back(node, count):
    """Reads the whole partition from the start."""
    consumer = ck.Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([ck.TopicPartition(TOPIC, 0, ck.OFFSET_BEGINNING)])
    numbers = []
    while True:
        message = consumer.poll(30)
        if message is None:
            raise RuntimeError(f"no answer for 30 s after {len(numbers)} records")
        if message.error() is None:
            if message.value() != payload(int(message.value()[:8])):
                raise RuntimeError(f"damaged record at offset {message.offset()}")
            numbers.append(int(message.value()[:8]))
        elif message.error().code() == ck.KafkaError._PARTITION_EOF:
            break
        elif not message.error().retriable():
            raise RuntimeError(str(message.error()))
    consumer.close()
    if numbers != list(range(count)):
        lost = sorted(set(range(count)) - set(numbers))
        raise RuntimeError(
            f"{len(numbers)} records read back of {count}, {len(lost)} lost (first {lost[:3]}), "
            f"{len(numbers) - len(set(numbers))} doubled"
        )


def one_round(binary, codec, count, shards):
    """One codec, one kill."""
    with tempfile.TemporaryDirectory(prefix="highwater-interop-") as folder:
        data = os.path.join(folder, "data")
        os.mkdir(data)
        node = Node(binary, data, shards=shards)
        try:
            admin = AdminClient({"bootstrap.servers": node.bootstrap})
            topic = NewTopic(TOPIC, num_partitions=1, replication_factor=1)
            admin.create_topics([topic])[TOPIC].result(30)
            node = produce(binary, data, node, codec, count)
            read_back(node, count)
            node.stop()
        except Exception:
            with open(os.path.join(folder, "node.log"), "rb") as log:
                sys.stderr.buffer.write(log.read()[-4000:])
            raise
        finally:
            if node.process.poll() is None:
                node.kill()


def main():
    """Runs all codecs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--records", type=int, default=50000)
    parser.add_argument("--codecs", nargs="*", default=CODECS)
    options = parser.parse_args()
    passed = failed = 0
    for codec in options.codecs:
        for number in range(1, options.rounds + 1):
            name = f"librdkafka {ck.libversion()[0]} {codec} round {number}"
            try:
                one_round(options.binary, codec, options.records, 1 + number % 2)
                passed += 1
                print(f"ok      {name}", flush=True)
            except Exception as why:
                failed += 1
                print(f"FAILED  {name}: {why}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
