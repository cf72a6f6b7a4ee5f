"""A data directory goes back and forth between Apache Kafka 4.4 and highwater.

Apache Kafka makes and fills a directory and stops; highwater opens it, must serve the same records
and offsets, and writes; Apache Kafka opens that after a clean stop and again after a kill -9 of
highwater, must see everything, and runs a transaction on top. Then the same with a directory that
highwater made; and with a directory that Apache Kafka left when it stopped, with all kinds of
topics, which highwater must serve as Apache Kafka does. Prints a line a case and 'N passed, N
failed' at the end.
"""

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import confluent_kafka as ck
import dump
import wire
from batches import batch
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
TOPICS = {
    **{f"codec-{codec}": {} for codec in CODECS},
    "spread": {},
    "txn": {},
    "trimmed": {},
    "small-segments": {"internal.segment.bytes": "20000", "segment.index.bytes": "4096"},
    "append-time": {"message.timestamp.type": "LogAppendTime"},
    "compacted": {"cleanup.policy": "compact"},
    "empty": {},
    "steady": {},
}
# A producer that nobody else is, for batches by hand.
STEADY_PRODUCER = 1_000_000_007
PARTITIONS = {"spread": 3, "txn": 2}
# What a server answers whose partitions are a little behind its metadata.
STARTING = (ck.KafkaError.UNKNOWN_LEADER_EPOCH, ck.KafkaError.FENCED_LEADER_EPOCH)
START_TIME_MS = 1_700_000_000_000

PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
log.retention.ms=-1
offsets.topic.num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=2
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.initial.task.delay.ms=500
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
metadata.log.max.record.bytes.between.snapshots=2000
"""


class Server:
    """One process on the shared directory, ended by its id."""

    def __init__(self, command, log, is_ready, seconds):
        self.name = os.path.basename(command[0])
        self.log_path = log
        start = os.path.getsize(log) if os.path.exists(log) else 0
        with open(log, "ab") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out)
        deadline = time.monotonic() + seconds
        while True:
            with open(log, "rb") as told:
                told.seek(start)
                text = told.read().decode(errors="replace")
            if is_ready(text):
                break
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"{self.name} does not serve:\n{text[-3000:]}")
            time.sleep(0.05)

    def kill(self):
        """Ends the process as a crash does."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Ends the process as an operator does."""
        self.process.terminate()
        code = self.process.wait(timeout=60)
        if code not in (0, 143):
            raise RuntimeError(f"{self.name}: exit code {code} after SIGTERM")


class Directory:
    """The directory, its configuration, and who may serve it."""

    def __init__(self, folder, binary, libs):
        self.folder = folder
        self.binary = binary
        self.libs = libs
        self.data = os.path.join(folder, "data")
        self.config = os.path.join(folder, "server.properties")
        port, controller = free_ports(2)
        self.bootstrap = f"127.0.0.1:{port}"
        text = PROPERTIES.format(port=port, controller=controller, data=self.data)
        with open(self.config, "w", encoding="ascii") as out:
            out.write(text)

    def java(self, *arguments):
        """A command of Apache Kafka."""
        flags = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        return ["java", *flags, "-cp", os.path.join(self.libs, "*"), *arguments]

    def format(self):
        """Formats the directory as Apache Kafka does."""
        cluster = "5L6g3nShT-eMCtK--X86sw"
        storage = self.java("kafka.tools.StorageTool", "format", "--standalone")
        command = [*storage, "-t", cluster, "-c", self.config]
        subprocess.run(command, check=True, capture_output=True)

    def kafka(self):
        """Apache Kafka serves the directory."""
        log = os.path.join(self.folder, "kafka.log")
        command = self.java("kafka.Kafka", self.config)
        return Server(command, log, lambda text: "Kafka Server started" in text, 90)

    def highwater(self):
        """Highwater serves the directory."""
        log = os.path.join(self.folder, "highwater.log")
        command = [self.binary, "start", "--config", self.config]
        return Server(command, log, lambda text: "highwater ready " in text, 60)


def free_ports(count):
    """Ports nobody listens on at the moment."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def producer(bootstrap, **more):
    """An idempotent producer."""
    settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5}
    return ck.Producer({**settings, **more})


def create_topics(bootstrap):
    """All topics of the exchange."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [
        NewTopic(name, PARTITIONS.get(name, 1), 1, config=config) for name, config in TOPICS.items()
    ]
    for future in admin.create_topics(topics).values():
        future.result(30)


def write(bootstrap, mark):
    """Some records into each topic but `empty` and `txn`; `mark` makes them tell their writer."""
    failed = []

    def delivered(error, _message):
        if error is not None:
            failed.append(str(error))

    for codec in CODECS:
        to_codec = producer(bootstrap, **{"compression.type": codec, "batch.num.messages": 50})
        for number in range(200):
            value = f"{mark} {codec} {number} " + "highwater " * 10
            to_codec.produce(f"codec-{codec}", value, f"key-{number}", on_delivery=delivered)
        to_codec.flush(30)
    plain = producer(bootstrap, **{"batch.num.messages": 20})
    for number in range(300):
        plain.produce(
            "spread",
            f"{mark} {number}",
            partition=number % 3,
            timestamp=START_TIME_MS + (number * 37) % 1000 * 1000,
            headers=[("a", b"1"), ("b", None)],
            on_delivery=delivered,
        )
        plain.produce("small-segments", f"{mark} {number} " + "x" * 500, on_delivery=delivered)
        plain.produce("append-time", f"{mark} {number}", on_delivery=delivered)
        plain.produce("trimmed", f"{mark} {number}", on_delivery=delivered)
        plain.produce("compacted", f"{mark} {number}", f"{number % 7}", on_delivery=delivered)
    left = plain.flush(30)
    if left or failed:
        raise RuntimeError(f"{left} records not delivered, failures: {failed[:3]}")


def transact(bootstrap, mark):
    """Commits and aborts by turns, over both partitions."""
    transactional = producer(bootstrap, **{"transactional.id": "exchange"})
    transactional.init_transactions(30)
    for number in range(6):
        transactional.begin_transaction()
        for record in range(10):
            transactional.produce("txn", f"{mark} {number} {record}", partition=record % 2)
        transactional.flush(30)
        if number % 2:
            transactional.abort_transaction(30)
        else:
            transactional.commit_transaction(30)


def commit_offsets(bootstrap):
    """A consumer group leaves its offsets."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "readers", "enable.auto.commit": False}
    consumer = ck.Consumer(settings)
    wanted = [ck.TopicPartition("spread", partition, 42) for partition in range(3)]
    consumer.commit(offsets=wanted, asynchronous=False)
    consumer.close()


def committed(bootstrap):
    """The offsets that the group left."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "readers"}
    consumer = ck.Consumer(settings)
    wanted = [ck.TopicPartition("spread", partition) for partition in range(3)]
    offsets = [found.offset for found in consumer.committed(wanted, timeout=30)]
    consumer.close()
    return offsets


def state(bootstrap):
    """What clients can see: the offsets of each partition, and each record at each isolation."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    listed = admin.list_topics(timeout=30).topics
    names = sorted(name for name in listed if not name.startswith("__"))
    partitions = [(name, part) for name in names for part in sorted(listed[name].partitions)]
    seen = {}
    specs = {
        "earliest": OffsetSpec.earliest(),
        "latest": OffsetSpec.latest(),
        "max": OffsetSpec.max_timestamp(),
        "by time": OffsetSpec.for_timestamp(START_TIME_MS + 500_000),
    }
    for what, spec in specs.items():
        for name, part in partitions:
            seen[(name, part, what)] = list_offset(admin, ck.TopicPartition(name, part), spec)
    for isolation in ("read_uncommitted", "read_committed"):
        for partition, records in read_all(bootstrap, partitions, isolation).items():
            seen[(*partition, isolation)] = records
    return seen


def list_offset(admin, partition, spec):
    """One offset and its timestamp. A server that has just started may ask to come again."""
    deadline = time.monotonic() + 20
    while True:
        try:
            future = admin.list_offsets({partition: spec}, request_timeout=30)[partition]
            found = future.result(30)
            return (found.offset, found.timestamp)
        except ck.KafkaException as why:
            passing = why.args[0].retriable() or why.args[0].code() in STARTING
            if not passing or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def read_all(bootstrap, partitions, isolation):
    """Every record of the partitions."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
    more = {"enable.partition.eof": True, "isolation.level": isolation, "check.crcs": True}
    consumer = ck.Consumer({**settings, **more})
    wanted = [ck.TopicPartition(name, part, ck.OFFSET_BEGINNING) for name, part in partitions]
    consumer.assign(wanted)
    records = {partition: [] for partition in partitions}
    open_partitions = set(partitions)
    while open_partitions:
        message = consumer.poll(20)
        if message is None:
            raise RuntimeError(f"no answer for 20 s, waiting for {sorted(open_partitions)}")
        partition = (message.topic(), message.partition())
        if message.error() is None:
            found = (message.offset(), message.timestamp(), message.key(), message.value())
            records[partition].append((*found, message.headers()))
        elif message.error().code() == ck.KafkaError._PARTITION_EOF:
            open_partitions.discard(partition)
        elif not message.error().retriable():
            raise RuntimeError(f"{partition}: {message.error()}")
    consumer.close()
    return records


def same(expected, found):
    """Nothing of `expected` may have changed."""
    for key in sorted(set(expected) | set(found)):
        if expected.get(key) != found.get(key):
            raise RuntimeError(f"{key}: {brief(expected.get(key))} became {brief(found.get(key))}")


def brief(value):
    """The interesting part of a list of records."""
    if isinstance(value, list):
        return f"{len(value)} records ({value[:1]} .. {value[-1:]})"
    return value


def grown(before, after, minimum):
    """Each record that was there is there, and at least `minimum` topics have more."""
    more = set()
    for key, records in before.items():
        if not isinstance(records, list):
            continue
        now = after.get(key, [])
        if now[: len(records)] != records:
            raise RuntimeError(f"{key}: {brief(records)} is not the start of {brief(now)}")
        if len(now) > len(records):
            more.add(key[0])
    if len(more) < minimum:
        raise RuntimeError(f"only {sorted(more)} have grown")


class Exchange:
    """The cases, in order: each takes the directory as the one before left it."""

    def __init__(self, directory):
        self.directory = directory
        self.bootstrap = directory.bootstrap
        self.known = None
        self.has_offsets = False
        self.open_transactions = []
        self.steady_offsets = []

    def served_by(self, serve, end, work):
        """Runs `work` while one of the two serves the directory."""
        server = serve()
        try:
            work()
            end(server)
        finally:
            if server.process.poll() is None:
                server.kill()

    def remember(self, minimum):
        """Checks that the directory has grown, and keeps what it shows now."""
        now = state(self.bootstrap)
        if self.known is not None:
            grown(self.known, now, minimum)
        self.known = now

    def go_on(self):
        """One producer goes on from server to server: its last batch, sent again, is known."""
        host, port = self.bootstrap.split(":")
        connection = wire.Connection(host, int(port), 30)
        sent = self.steady_offsets
        for number in range(max(len(sent) - 1, 0), len(sent) + 2):
            # Of now, or a server that starts forgets the producer as long idle.
            now = {"base_timestamp": int(time.time() * 1000)}
            of_steady = {"producer_id": STEADY_PRODUCER, "producer_epoch": 0, "sequence": number}
            records = batch(**of_steady, **now)
            data = [{"Index": 0, "Records": records}]
            topics = [{"Name": "steady", "PartitionData": data}]
            asked = {"Acks": -1, "TimeoutMs": 30000, "TopicData": topics}
            row = connection.ask(0, 12, asked)["Responses"][0]["PartitionResponses"][0]
            if number == len(sent) and row["ErrorCode"] == 0:
                sent.append(row["BaseOffset"])
            if row["ErrorCode"] != 0 or sent[number : number + 1] != [row["BaseOffset"]]:
                raise RuntimeError(f"batch {number} of the steady producer: {row}, known {sent}")
        connection.close()
        if sent != list(range(len(sent))):
            raise RuntimeError(f"the steady producer's offsets are {sent}")

    def leave_open(self, mark):
        """Leaves a transaction open: below its first record readers of committed ones stop."""
        settings = {"transactional.id": f"open-{mark}", "transaction.timeout.ms": 600_000}
        transactional = producer(self.bootstrap, **settings)
        transactional.init_transactions(30)
        transactional.begin_transaction()
        transactional.produce("txn", f"{mark}, open", partition=1)
        transactional.flush(30)
        self.open_transactions.append(transactional)

    def kafka_fills(self):
        """Apache Kafka fills the directory and stops."""

        def work():
            create_topics(self.bootstrap)
            write(self.bootstrap, "kafka")
            transact(self.bootstrap, "kafka")
            commit_offsets(self.bootstrap)
            self.has_offsets = True
            self.go_on()
            admin = AdminClient({"bootstrap.servers": self.bootstrap})
            trimmed = admin.delete_records([ck.TopicPartition("trimmed", 0, 123)])
            for future in trimmed.values():
                future.result(30)
            self.remember(0)

        self.directory.format()
        self.served_by(self.directory.kafka, Server.stop, work)

    def highwater_fills(self):
        """Highwater formats the directory, fills it and is killed."""

        def work():
            create_topics(self.bootstrap)
            write(self.bootstrap, "highwater")
            self.go_on()
            admin = AdminClient({"bootstrap.servers": self.bootstrap})
            admin.create_topics([NewTopic("gone", 2, 1)])["gone"].result(30)
            admin.delete_topics(["gone"])["gone"].result(30)
            self.remember(0)

        self.served_by(self.directory.highwater, Server.kill, work)

    def highwater_takes_over(self, end):
        """Highwater shows the same, takes new writes and topics, and ends."""

        def work():
            same(self.known, state(self.bootstrap))
            mark = f"highwater {end.__name__}"
            write(self.bootstrap, mark)
            self.go_on()
            admin = AdminClient({"bootstrap.servers": self.bootstrap})
            name = f"made-{end.__name__}"
            admin.create_topics([NewTopic(name, 2, 1)])[name].result(30)
            to_new = producer(self.bootstrap)
            to_new.produce(name, mark)
            to_new.flush(30)
            self.remember(9)

        self.served_by(self.directory.highwater, end, work)

    def kafka_takes_over(self, end):
        """Apache Kafka shows the same, takes new writes and transactions, and ends."""

        def work():
            same(self.known, state(self.bootstrap))
            if self.has_offsets and committed(self.bootstrap) != [42, 42, 42]:
                raise RuntimeError(f"committed offsets are {committed(self.bootstrap)}")
            write(self.bootstrap, "kafka again")
            transact(self.bootstrap, "kafka again")
            self.go_on()
            if end is Server.kill:
                self.leave_open("kafka again")
            self.remember(10)

        self.served_by(self.directory.kafka, end, work)

    def rebuilt(self):
        """Highwater makes anew what the logs tell: indexes, transaction indexes, producers."""
        lost = (".index", ".timeindex", ".txnindex", ".snapshot")
        for folder in os.listdir(self.directory.data):
            path = os.path.join(self.directory.data, folder)
            if folder.startswith("__") or not os.path.isdir(path):
                continue
            for name in os.listdir(path):
                if name.endswith(lost):
                    os.remove(os.path.join(path, name))

        def work():
            same(self.known, state(self.bootstrap))
            self.go_on()
            self.remember(1)

        self.served_by(self.directory.highwater, Server.stop, work)

    def dumped(self):
        """Every file, by both."""
        kinds = (".log", ".index", ".timeindex", ".snapshot", ".txnindex", ".checkpoint")
        directory = self.directory
        dump.compare(directory.data, directory.binary, directory.libs, kinds)

    def of_kafka(self):
        """The way of a directory that Apache Kafka made: names and steps."""
        yield "Apache Kafka fills a directory and stops", self.kafka_fills
        yield (
            "highwater opens Apache Kafka's directory, serves the same, writes, stops",
            lambda: self.highwater_takes_over(Server.stop),
        )
        yield (
            "Apache Kafka opens what highwater stopped, reads all, writes, is killed",
            lambda: self.kafka_takes_over(Server.kill),
        )
        yield (
            "highwater opens what Apache Kafka left at kill -9, serves the same, is killed",
            lambda: self.highwater_takes_over(Server.kill),
        )
        yield (
            "Apache Kafka opens what highwater left at kill -9, reads all, writes, stops",
            lambda: self.kafka_takes_over(Server.stop),
        )
        yield "both dump every file alike, after Apache Kafka", self.dumped

    def of_highwater(self):
        """The way of a directory that highwater made: names and steps."""
        yield "highwater formats and fills a directory, is killed", self.highwater_fills
        yield (
            "Apache Kafka opens highwater's own directory, reads all, writes, stops",
            lambda: self.kafka_takes_over(Server.stop),
        )
        yield (
            "highwater takes its directory back, serves the same, writes, stops",
            lambda: self.highwater_takes_over(Server.stop),
        )
        yield "highwater makes lost indexes and snapshots anew, serves the same", self.rebuilt
        yield "both dump every file alike, after highwater", self.dumped


class Left(Exchange):
    """A directory that Apache Kafka left, with topics of all kinds."""

    def __init__(self, directory, fixture):
        super().__init__(directory)
        self.fixture = fixture
        # Nothing is compacted while it is looked at.
        self.settings = "log.cleaner.enable=false\n"

    def lay(self):
        """The directory as it was left."""
        shutil.rmtree(self.directory.data, ignore_errors=True)
        shutil.copytree(self.fixture, self.directory.data)

    def kafka_serves(self):
        """What Apache Kafka shows of it."""
        with open(self.directory.config, "a", encoding="ascii") as out:
            out.write(self.settings)
        self.lay()
        self.served_by(self.directory.kafka, Server.stop, lambda: self.remember(0))
        if len({name for name, *_ in self.known}) < 10:
            raise RuntimeError("the directory has few topics")

    def highwater_serves(self):
        """Highwater shows the same of it as it was left, and writes."""

        def work():
            same(self.known, state(self.bootstrap))
            admin = AdminClient({"bootstrap.servers": self.bootstrap})
            admin.create_topics([NewTopic("made", 2, 1)])["made"].result(30)
            more = producer(self.bootstrap)
            for topic in ("made", "plain", "codecs", "headers", "empty"):
                more.produce(topic, "of highwater", partition=0)
            if more.flush(30):
                raise RuntimeError("not delivered")
            self.remember(4)

        self.lay()
        self.served_by(self.directory.highwater, Server.stop, work)

    def kafka_serves_again(self):
        """Apache Kafka shows all of that."""
        work = lambda: same(self.known, state(self.bootstrap))
        self.served_by(self.directory.kafka, Server.stop, work)

    def steps(self):
        """Names and steps."""
        yield "Apache Kafka serves the directory of the fixtures", self.kafka_serves
        yield (
            "highwater serves it as one node, every topic as Apache Kafka does, and writes",
            self.highwater_serves,
        )
        yield "Apache Kafka serves what highwater left of it", self.kafka_serves_again


def main():
    """Runs all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--kafka-libs", required=True)
    parser.add_argument("--fixture", help="a log directory of Apache Kafka, from the fixtures")
    parser.add_argument("--keep", help="a folder to work in, which stays")
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(prefix="highwater-interop-") as folder:
        for way in (Exchange.of_kafka, Exchange.of_highwater):
            home = os.path.join(options.keep or folder, way.__name__)
            os.makedirs(home)
            directory = Directory(home, options.binary, options.kafka_libs)
            results += run(way(Exchange(directory)))
        if options.fixture:
            home = os.path.join(options.keep or folder, "left")
            os.makedirs(home)
            directory = Directory(home, options.binary, options.kafka_libs)
            results += run(Left(directory, options.fixture).steps())
    print(f"{results.count(True)} passed, {results.count(False)} failed")
    return 0 if all(results) else 1


def run(cases):
    """Runs the cases; after a failure the rest cannot run and count as failed."""
    results = []
    for name, step in cases:
        start = time.monotonic()
        try:
            if False in results:
                raise RuntimeError("the case before failed")
            step()
            results.append(True)
            print(f"ok      {name} ({time.monotonic() - start:.1f} s)", flush=True)
        except Exception as why:
            results.append(False)
            print(f"FAILED  {name}: {why}", flush=True)
    return results


if __name__ == "__main__":
    sys.exit(main())
