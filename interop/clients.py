"""The newest confluent-kafka against one node: each codec, metadata, offsets by time, topics.

Prints a line a case and 'N passed, N failed' at the end.
"""

import argparse
import os
import sys
import tempfile

import confluent_kafka as ck
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from librdkafka import CODECS, Node

START_TIME_MS = 1_700_000_000_000


def expect(found, wanted, what):
    """Fails with both when they differ."""
    if found != wanted:
        raise RuntimeError(f"{what}: {found!r}, not {wanted!r}")


class Cases:
    """One node for all."""

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap})

    def produce(self, topic, records, **settings):
        """Records as (partition, key, value, timestamp, headers); gives their offsets."""
        offsets = []

        def delivered(error, message):
            offsets.append(error or message.offset())

        producer = ck.Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5, **settings})
        for partition, key, value, timestamp, headers in records:
            producer.produce(
                topic,
                value,
                key,
                partition,
                on_delivery=delivered,
                timestamp=timestamp,
                headers=headers,
            )
        expect(producer.flush(20), 0, "records that were not delivered")
        return offsets

    def consume(self, topic, partition, offset, count, **settings):
        """So many records from an offset on."""
        settings = {"bootstrap.servers": self.bootstrap, "group.id": "unused", **settings}
        consumer = ck.Consumer({"enable.auto.commit": False, "check.crcs": True, **settings})
        consumer.assign([ck.TopicPartition(topic, partition, offset)])
        messages = []
        while len(messages) < count:
            message = consumer.poll(20)
            if message is None:
                raise RuntimeError(f"no answer for 20 s after {len(messages)} records")
            if message.error() is None:
                messages.append(message)
            elif not message.error().retriable():
                raise RuntimeError(str(message.error()))
        consumer.close()
        return messages

    def codec(self, codec):
        """Keys, values, timestamps and headers come back, from the middle of a batch too."""
        topic = f"codec-{codec}"
        self.admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(20)
        sent = [
            (1, b"key-%d" % at, b"value-%d " % at * 20, START_TIME_MS + at, [("n", b"%d" % at)])
            for at in range(500)
        ]
        for idempotence in (False, True):
            more = {"compression.type": codec, "enable.idempotence": idempotence}
            first = 500 if idempotence else 0
            offsets = self.produce(topic, sent, **more)
            expect(offsets, list(range(first, first + 500)), "offsets")
        for offset in (0, 1, 249, 750):
            read = self.consume(topic, 1, offset, 1000 - offset)
            found = [(m.key(), m.value(), m.timestamp()[1], m.headers()) for m in read]
            wanted = [each[1:] for each in sent + sent][offset:]
            expect(found == wanted, True, f"records from {offset} on are what was sent")
            expect(read[0].offset(), offset, "the first offset")

    def acks(self):
        """Each of acks=0, 1 and all writes."""
        for number, acks in enumerate(("0", "1", "all")):
            self.produce("acks", [(0, b"k", acks.encode(), START_TIME_MS, [])], acks=acks)
            read = self.consume("acks", 0, 0, number + 1)
            expect(read[-1].value(), acks.encode(), "the newest record")

    def metadata(self):
        """Brokers, topics, partitions, leaders; an unknown topic; the cluster's description."""
        self.admin.create_topics([NewTopic("seen", 3, 1)])["seen"].result(20)
        listed = self.admin.list_topics(timeout=20)
        expect(f"{listed.brokers[1].host}:{listed.brokers[1].port}", self.bootstrap, "the broker")
        seen = listed.topics["seen"]
        leaders = {at: (it.leader, it.replicas, it.isrs) for at, it in seen.partitions.items()}
        expect(leaders, {at: (1, [1], [1]) for at in range(3)}, "partitions")
        described = self.admin.describe_cluster().result(20)
        expect(described.cluster_id, listed.cluster_id, "the cluster id")
        expect([node.id for node in described.nodes], [1], "nodes")
        topics = self.admin.describe_topics(ck.TopicCollection(["seen", "unseen"]))
        expect(len(topics["seen"].result(20).partitions), 3, "partitions described")
        try:
            topics["unseen"].result(20)
        except ck.KafkaException as why:
            code = why.args[0].code()
            expect(code, ck.KafkaError.UNKNOWN_TOPIC_OR_PART, "an unknown topic's error")
        else:
            raise RuntimeError("an unknown topic was described")

    def offsets(self):
        """Latest, earliest, greatest timestamp, and by time inside batches."""
        # Not in the order of time: the greatest is in the middle.
        times = [START_TIME_MS + (at * 37) % 100 * 1000 for at in range(100)]
        records = [(0, b"k", b"%d" % at, time, []) for at, time in enumerate(times)]
        self.produce("offsets", records, **{"batch.num.messages": 7})
        found = {}
        for name, spec in {
            "latest": OffsetSpec.latest(),
            "earliest": OffsetSpec.earliest(),
            "greatest": OffsetSpec.max_timestamp(),
        }.items():
            partition = ck.TopicPartition("offsets", 0)
            answer = self.admin.list_offsets({partition: spec})[partition].result(20)
            found[name] = answer.offset
        wanted = {"latest": 100, "earliest": 0, "greatest": times.index(max(times))}
        expect(found, wanted, "special offsets")
        consumer = ck.Consumer({"bootstrap.servers": self.bootstrap, "group.id": "unused"})
        for time in (0, times[0], times[50], times[50] + 1, max(times), max(times) + 1):
            asked = [ck.TopicPartition("offsets", 0, time)]
            offset = consumer.offsets_for_times(asked, timeout=20)[0].offset
            later = [at for at, each in enumerate(times) if each >= time]
            expect(offset, later[0] if later else ck.OFFSET_END, f"the offset for {time}")
        expect(consumer.get_watermark_offsets(ck.TopicPartition("offsets", 0)), (0, 100), "marks")
        consumer.close()

    def topics(self):
        """Configs, wrong topics, deletion."""
        wanted = NewTopic("short", 1, 1, config={"retention.ms": "777"})
        self.admin.create_topics([wanted])["short"].result(20)
        for bad, code in [
            (wanted, ck.KafkaError.TOPIC_ALREADY_EXISTS),
            (NewTopic("bad name", 1, 1), ck.KafkaError.TOPIC_EXCEPTION),
            (NewTopic("wide", 1, 3), ck.KafkaError.INVALID_REPLICATION_FACTOR),
            (NewTopic("odd", 1, 1, config={"no.such": "1"}), ck.KafkaError.INVALID_CONFIG),
        ]:
            try:
                self.admin.create_topics([bad])[bad.topic].result(20)
            except ck.KafkaException as why:
                expect(why.args[0].code(), code, f"the error of {bad.topic}")
            else:
                raise RuntimeError(f"{bad.topic} was made")
        resource = ConfigResource(ResourceType.TOPIC, "short")
        configs = self.admin.describe_configs([resource])[resource].result(20)
        expect(configs["retention.ms"].value, "777", "retention.ms")
        self.admin.delete_topics(["short"])["short"].result(20)
        expect("short" in self.admin.list_topics(timeout=20).topics, False, "listed after deletion")

    def cases(self):
        """Names and steps."""
        for codec in CODECS:
            yield f"each field comes back, {codec}", lambda codec=codec: self.codec(codec)
        yield "acks 0, 1, all", self.acks
        yield "metadata", self.metadata
        yield "list offsets, also by time", self.offsets
        yield "create, describe, delete topics", self.topics


def main():
    """Runs all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True)
    options = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="highwater-interop-") as folder:
        data = os.path.join(folder, "data")
        os.mkdir(data)
        node = Node(options.binary, data)
        for name, step in Cases(node.bootstrap).cases():
            name = f"confluent-kafka {ck.version()}, {name}"
            try:
                step()
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
