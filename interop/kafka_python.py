"""Case C-13: kafka-python, old and new, finds out by itself what it talks to.

Each version runs in a process of its own, without `api_version`: it must take the node for the
newest release that it knows by what the node serves, never for an unrecognised one, and must then
produce, consume, describe, and join a group once groups are served. Prints a line a case and
'N passed, N failed' at the end.
"""

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile

# The oldest in use, the first of the new maintainers, the last of series 2 that the case names,
# and the newest that it names; with what each must take the node for at least. Up to 2.3 it goes by
# single requests: 2.6 means DescribeClientQuotas, which the node does not serve yet.
VERSIONS = {"2.0.2": (2, 4), "2.1.2": (2, 4), "2.3.0": (2, 4), "3.0.12": (4, 0)}
START_TIME_MS = 1_700_000_000_000
RECORDS = 100
JOIN_GROUP = 11


class Complaints(logging.Handler):
    """Keeps what the client complains about."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())


def expect(found, wanted, what):
    """Fails with both when they differ."""
    if found != wanted:
        raise RuntimeError(f"{what}: {found!r}, not {wanted!r}")


class Client:
    """One version of kafka-python against one node."""

    def __init__(self, bootstrap, known_as, apis):
        import kafka
        from kafka import admin

        self.kafka, self.admin_of = kafka, admin
        self.bootstrap = bootstrap
        self.known_as = known_as
        self.apis = apis
        self.topic = "kafka-python-" + kafka.__version__
        self.partitions = [kafka.TopicPartition(self.topic, at) for at in range(2)]

    def recognised(self, client):
        """The release that the client takes the node for."""
        release = tuple(client.config["api_version"])
        if release < self.known_as:
            raise RuntimeError(f"taken for {release}, not for {self.known_as} or newer")

    def admin(self):
        """Topics and configs."""
        admin = self.admin_of.KafkaAdminClient(bootstrap_servers=self.bootstrap)
        configs = {"retention.ms": "-1"}
        admin.create_topics([self.admin_of.NewTopic(self.topic, 2, 1, topic_configs=configs)])
        listed = admin.list_topics()
        names = [it if isinstance(it, str) else it["name"] for it in listed]
        expect(self.topic in names, True, f"listed: {names}")
        kind = self.admin_of.ConfigResourceType.TOPIC
        resource = self.admin_of.ConfigResource(kind, self.topic)
        described = repr(admin.describe_configs([resource]))
        expect("retention.ms" in described and "-1" in described, True, described)
        expect(len(admin.describe_cluster()["brokers"]), 1, "brokers")
        topics = admin.describe_topics([self.topic])
        expect(len(topics[0]["partitions"]), 2, "partitions")
        admin.close()

    def produce(self):
        """Every record is acknowledged at its offset."""
        for codec in (None, "gzip"):
            producer = self.kafka.KafkaProducer(
                bootstrap_servers=self.bootstrap, acks="all", compression_type=codec
            )
            self.recognised(producer)
            sent = [
                producer.send(
                    self.topic,
                    key=b"key-%d" % at,
                    value=b"value-%d" % at,
                    partition=at % 2,
                    headers=[("n", b"%d" % at)],
                    timestamp_ms=START_TIME_MS + at,
                )
                for at in range(RECORDS)
            ]
            producer.flush(20)
            first = 0 if codec is None else RECORDS // 2
            offsets = [future.get(20).offset for future in sent]
            expect(offsets, [first + at // 2 for at in range(RECORDS)], "offsets")
            producer.close()

    def consume(self):
        """Everything is read back; offsets are found by time."""
        consumer = self.kafka.KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            consumer_timeout_ms=20000,
        )
        self.recognised(consumer)
        consumer.assign(self.partitions)
        read = self.read(consumer, 2 * RECORDS)
        for partition in self.partitions:
            own = [it for it in read if it.partition == partition.partition]
            expect([it.offset for it in own], list(range(RECORDS)), f"offsets of {partition}")
            for at, record in enumerate(own):
                number = (at * 2 + partition.partition) % RECORDS
                found = (record.key, record.value, record.timestamp, list(record.headers))
                wanted = (
                    b"key-%d" % number,
                    b"value-%d" % number,
                    START_TIME_MS + number,
                    [("n", b"%d" % number)],
                )
                expect(found, wanted, f"record {at} of {partition}")
        partition = self.partitions[1]
        expect(consumer.beginning_offsets([partition]), {partition: 0}, "the start")
        expect(consumer.end_offsets([partition]), {partition: RECORDS}, "the end")
        found = consumer.offsets_for_times({partition: START_TIME_MS + 50})[partition]
        expect((found.offset, found.timestamp), (25, START_TIME_MS + 51), "the offset by time")
        consumer.close()

    def group(self):
        """A group deals out its partitions, commits, and goes on where it was."""
        for wanted in (2 * RECORDS, 0):
            consumer = self.kafka.KafkaConsumer(
                self.topic,
                bootstrap_servers=self.bootstrap,
                group_id="group-" + self.topic,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                consumer_timeout_ms=20000 if wanted else 4000,
            )
            read = self.read(consumer, wanted or 1)
            expect(len(read), wanted, "records of the group")
            consumer.commit()
            for partition in self.partitions:
                expect(consumer.committed(partition), RECORDS, f"committed of {partition}")
            consumer.close()

    def delete(self):
        """The topic is gone afterwards."""
        admin = self.admin_of.KafkaAdminClient(bootstrap_servers=self.bootstrap)
        admin.delete_topics([self.topic])
        names = [it if isinstance(it, str) else it["name"] for it in admin.list_topics()]
        expect(self.topic in names, False, f"listed: {names}")
        admin.close()

    @staticmethod
    def read(consumer, count):
        """At most so many records; fewer when none come for a while."""
        read = []
        for record in consumer:
            read.append(record)
            if len(read) == count:
                break
        return read

    def run(self):
        """All steps; the client may complain about nothing that it takes for a fault."""
        complaints = Complaints()
        logging.getLogger("kafka").addHandler(complaints)
        self.admin()
        self.produce()
        self.consume()
        if JOIN_GROUP in self.apis:
            self.group()
        self.delete()
        bad = [it for it in complaints.texts if "unrecogni" in it.lower()]
        expect(bad, [], "complaints")


def one(version, packages, bootstrap, apis):
    """Runs this script anew with one version on the path."""
    environment = dict(os.environ, PYTHONPATH=os.path.join(packages, f"kafka-python-{version}"))
    command = [sys.executable, os.path.abspath(__file__), "--bootstrap", bootstrap]
    command += ["--known-as", json.dumps(VERSIONS[version]), "--apis", json.dumps(apis)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}\n{done.stdout}{done.stderr[-4000:]}")


def announced(bootstrap):
    """The keys of the APIs that the node serves."""
    import wire

    host, port = bootstrap.rsplit(":", 1)
    connection = wire.Connection(host, int(port))
    answer = connection.ask(18, 0, {})
    connection.close()
    return sorted(it["ApiKey"] for it in answer["ApiKeys"])


def main():
    """Runs all versions, or, with --bootstrap, the one on the path."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary")
    parser.add_argument("--packages", help="the folder with kafka-python-VERSION/")
    parser.add_argument("--bootstrap")
    parser.add_argument("--known-as", type=json.loads)
    parser.add_argument("--apis", type=json.loads)
    options = parser.parse_args()
    if options.bootstrap:
        Client(options.bootstrap, tuple(options.known_as), options.apis).run()
        return 0
    from librdkafka import Node

    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="highwater-interop-") as folder:
        data = os.path.join(folder, "data")
        os.mkdir(data)
        node = Node(options.binary, data)
        apis = announced(node.bootstrap)
        for version in VERSIONS:
            name = f"C-13, kafka-python {version} finds out the release and works"
            try:
                one(version, options.packages, node.bootstrap, apis)
                passed += 1
                print(f"ok      {name}", flush=True)
            except Exception as why:
                failed += 1
                print(f"FAILED  {name}: {why}", flush=True)
        node.stop()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
