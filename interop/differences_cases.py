"""What interop/differences.py asks: for each served API good and bad arguments, at all versions."""

import struct
import uuid
from random import Random

import differences_random
import wire
from batches import batch, record
from differences_common import BAD_NAMES, CLUSTER, FEATURES, KNOWN, UNKNOWN_ID, ZERO_ID, show
from wire import fitting


def cases(topic_id, kept):
    """Names and functions; the first makes the topics of the rest."""
    stories = Stories(topic_id, kept)
    return [
        ("topics", stories.topics),
        ("ApiVersions", stories.api_versions),
        ("frames", stories.frames),
        ("Metadata", stories.metadata),
        ("CreateTopics", stories.create_topics),
        ("DeleteTopics", stories.delete_topics),
        ("DescribeConfigs", stories.describe_configs),
        ("DescribeCluster", stories.describe_cluster),
        ("DescribeTopicPartitions", stories.describe_topic_partitions),
        ("InitProducerId", stories.init_producer_id),
        ("Produce", stories.produce),
        ("Produce, sequences", stories.sequences),
        ("ListOffsets", stories.list_offsets),
        ("OffsetForLeaderEpoch", stories.offset_for_leader_epoch),
        ("Fetch", stories.fetch),
        ("Fetch, sessions", stories.fetch_sessions),
        ("a random log", stories.random_log),
        ("random sequences", stories.random_sequences),
        *differences_random.cases(stories),
        ("controller listener", stories.controller),
    ]


class Stories:
    """One function per API."""

    def __init__(self, topic_id, kept):
        self.topic_id = topic_id
        self.kept = kept

    def topics(self, pair):
        """Topics for all cases."""
        wanted = [
            {"Name": name, "NumPartitions": partitions, "ReplicationFactor": 1, "Configs": configs}
            for name, partitions, configs in [
                ("data", 2, []),
                ("fresh", 1, []),
                ("bad", 1, []),
                ("odd", 1, []),
                ("seq", 1, []),
                (
                    "configured",
                    1,
                    [
                        {"Name": "retention.ms", "Value": "12345"},
                        {"Name": "max.message.bytes", "Value": "400"},
                    ],
                ),
                ("compacted", 1, [{"Name": "cleanup.policy", "Value": "compact"}]),
                ("stamped", 1, [{"Name": "message.timestamp.type", "Value": "LogAppendTime"}]),
                ("strict", 1, [{"Name": "message.timestamp.before.max.ms", "Value": "1000"}]),
                ("zipped", 1, [{"Name": "compression.type", "Value": "gzip"}]),
            ]
        ]
        pair.ask("the topics", 19, 7, {"Topics": wanted})
        for side in (pair.kafka, pair.ours):
            side.learn_ids()
        pair.settle(
            [
                "data",
                "fresh",
                "bad",
                "odd",
                "seq",
                "configured",
                "compacted",
                "stamped",
                "strict",
                "zipped",
            ]
        )
        for number in range(3):
            good = batch(values=5, base_timestamp=1_700_000_000_000 + number * 60_000)
            self.produce_one(pair, "filling", "data", good)

    # ApiVersions and frames

    def api_versions(self, pair):
        """The lists of keys and features differ while highwater serves fewer."""
        less = ("ApiKeys", "FinalizedFeatures", "FinalizedFeaturesEpoch", "SupportedFeatures")
        name = {"ClientSoftwareName": "probe", "ClientSoftwareVersion": "1.0"}
        pair.versions("plain", 18, name, ignore=less)
        for bad in ("", "bad name!", "-a", "a-", "a.b-c", "\u00e9"):
            asked = {"ClientSoftwareName": bad, "ClientSoftwareVersion": "1"}
            pair.versions(f"software name {bad!r}", 18, asked, first=3, ignore=less)
            asked = {"ClientSoftwareName": "probe", "ClientSoftwareVersion": bad}
            pair.versions(f"software version {bad!r}", 18, asked, first=3, ignore=less)
        for cluster in (None, "5L6g3nShT-eMCtK--X86sw", "another"):
            for node in (-1, 1, 2):
                asked = {**name, "ClusterId": cluster, "NodeId": node}
                pair.ask(f"cluster {cluster} node {node}", 18, 5, asked, ignore=less)
        for version in (6, 99, -1):
            self.raw(pair, f"unknown version {version}", 18, version, b"\x02a\x02b\0")

    def frames(self, pair):
        """Unknown keys and versions, short bodies, trailing bytes."""
        for key, version in [
            (0, 0),
            (0, 2),
            (0, 14),
            (1, 3),
            (1, 19),
            (3, 14),
            (3, -1),
            (999, 0),
            (-1, 0),
            (52, 0),
            (62, 0),
            (4, 0),
            (22, 6),
            (19, 1),
            (20, 0),
        ]:
            self.raw(pair, f"key {key} version {version}", key, version, b"\0" * 32)
        for key in (1, 2, 3, 19, 20, 22, 23, 32, 60, 75):
            low, high = wire.REQUESTS[key].versions
            for version in (low, high):
                self.raw(pair, f"short body of key {key} v{version}", key, version, b"\0")
        for version in (1, 9, 13):
            pair.ask("trailing bytes", 3, version, {"Topics": []}, tail=b"\x01\x02\x03")
        # Counts beyond what is there.
        huge = struct.pack(">i", 0x7FFFFFF0)
        self.raw(pair, "a huge count", 3, 1, huge)
        self.raw(pair, "a huge compact count", 3, 12, b"\xff\xff\xff\xff\x07")
        self.raw(pair, "a count below -1", 3, 1, struct.pack(">i", -2))

    def raw(self, pair, what, key, version, body):
        """Bytes that the schema cannot make; only whether and how many bytes come back."""
        outcomes = []
        pair.asked += 1
        for side in (pair.kafka, pair.ours):
            connection = wire.Connection("127.0.0.1", side.port, 3)
            flexible = key in wire.REQUESTS and wire.within(version, wire.REQUESTS[key].flexible)
            connection.correlation += 1
            head = struct.pack(">hhi", key, version, 7) + struct.pack(">h", 5) + b"probe"
            frame = head + (b"\0" if flexible else b"") + body
            connection.socket.sendall(struct.pack(">i", len(frame)) + frame)
            try:
                answer = connection.receive()
            except TimeoutError:
                answer = "silent"
            outcomes.append("closed" if answer is None else answer)
            connection.close()
        if what in KNOWN:
            pair.known.add(what)
        elif outcomes[0] != outcomes[1]:
            told = f"{what}:\n    kafka     {outcomes[0]!r}\n    highwater {outcomes[1]!r}"
            pair.differences[told] = [version]

    # Metadata and its relatives

    def metadata(self, pair):
        """All, none, named, unknown, by id."""
        pair.versions("all (null)", 3, {"Topics": None}, first=1, ignore=("Topics",))
        pair.versions("none (empty)", 3, {"Topics": []}, ignore=("Topics",))
        auto = {"AllowAutoTopicCreation": False}
        named = [{"Name": "data"}, {"Name": "configured"}]
        more = {
            "IncludeTopicAuthorizedOperations": True,
            "IncludeClusterAuthorizedOperations": True,
        }
        pair.versions("named", 3, {"Topics": named, **auto})
        pair.versions("named, with operations", 3, {"Topics": named, **auto, **more}, first=8)
        pair.versions("twice", 3, {"Topics": [{"Name": "data"}, {"Name": "data"}], **auto})
        for name in BAD_NAMES:
            pair.versions(
                f"bad name {name[:9]!r}", 3, {"Topics": [{"Name": name}], **auto}, first=4
            )
            if name:
                pair.versions(
                    f"bad name {name[:9]!r} to create", 3, {"Topics": [{"Name": name}]}, first=1
                )
        pair.versions("unknown", 3, {"Topics": [{"Name": "nope"}], **auto}, first=4)
        mixed = [{"Name": "nope"}, {"Name": "data"}, {"Name": "bad name!"}]
        pair.versions("mixed", 3, {"Topics": mixed, **auto}, first=4)
        pair.versions("mixed, with operations", 3, {"Topics": mixed, **auto, **more}, first=8)
        for version in (0, 1, 4, 9, 12, 13):
            # The first says that there is no leader yet; later ones depend on who is quicker.
            asked = fit_names(version, [{"Name": f"auto-{version}"}])
            pair.ask("creating", 3, version, asked)
        for version in (10, 11, 12, 13):
            ids = [self.topic_id("data"), UNKNOWN_ID, ZERO_ID]
            for topic in ids:
                for name in ("data", None, "other"):
                    asked = {"Topics": [{"TopicId": topic, "Name": name}], **auto}
                    pair.ask(f"id {show(topic)} name {name}", 3, version, asked)
            asked = {"Topics": [{"TopicId": topic, "Name": None} for topic in ids[:2]], **auto}
            pair.ask("by ids", 3, version, asked)
            pair.ask("by ids, with operations", 3, version, fitting(3, version, {**asked, **more}))
            both = [{"TopicId": ids[0], "Name": None}, {"Name": "data"}]
            pair.ask("by id and name", 3, version, {"Topics": both, **auto})

    def describe_cluster(self, pair):
        """Endpoint types and operations."""
        for operations in (False, True):
            for kind in (0, 1, 2, 3):
                for fenced in (False, True):
                    asked = {
                        "IncludeClusterAuthorizedOperations": operations,
                        "EndpointType": kind,
                        "IncludeFencedBrokers": fenced,
                    }
                    pair.versions(
                        f"operations {operations}, type {kind}, fenced {fenced}", 60, asked
                    )

    def describe_topic_partitions(self, pair):
        """Pages, cursors, unknown and bad names."""
        names = [{"Name": "data"}, {"Name": "configured"}]
        pair.ask("all", 75, 0, {"Topics": []}, ignore=("Topics",))
        for limit in (0, 1, 2, 3, 2000, -1):
            asked = {"Topics": names, "ResponsePartitionLimit": limit}
            pair.ask(f"limit {limit}", 75, 0, asked)
        for name, partition in [
            ("data", 1),
            ("data", 0),
            ("configured", 0),
            ("data", 5),
            ("e", 0),
            ("", 0),
            ("data", -1),
            ("zzz", 0),
        ]:
            cursor = {"TopicName": name, "PartitionIndex": partition}
            asked = {"Topics": names, "Cursor": cursor, "ResponsePartitionLimit": 10}
            pair.ask(f"cursor {name}-{partition}", 75, 0, asked)
        pair.ask("twice", 75, 0, {"Topics": [{"Name": "data"}, {"Name": "data"}]})
        for name in ["nope", *BAD_NAMES]:
            pair.ask(f"name {name[:9]!r}", 75, 0, {"Topics": [{"Name": name}, {"Name": "data"}]})

    # Topics

    def create_topics(self, pair):
        """Each wrong argument, with the message."""

        def create(what, topics, **more):
            names = [{**topic, "Name": topic["Name"]} for topic in topics]
            pair.versions(what, 19, {"Topics": names, "timeoutMs": 5000, **more})

        def one(**fields):
            return [{"Name": "made", "NumPartitions": 1, "ReplicationFactor": 1, **fields}]

        check = {"validateOnly": True}
        create("validate only", one(), **check)
        for partitions in (-1, 0, -2, 3):
            create(f"{partitions} partitions", one(NumPartitions=partitions), **check)
        for factor in (-1, 0, 2, -2):
            create(f"replication factor {factor}", one(ReplicationFactor=factor), **check)
        create("defaults", one(NumPartitions=-1, ReplicationFactor=-1), **check)
        for name in [*BAD_NAMES, "data", "a.b", "__consumer_offsets", "__cluster_metadata"]:
            create(f"name {name[:9]!r}", one(Name=name), **check)
        create("exists", one(Name="data"))
        create("twice", one() + one(), **check)
        create("twice and good", one() + one() + one(Name="other"), **check)
        create("none", [], **check)
        assigned = {"NumPartitions": -1, "ReplicationFactor": -1}

        def parts(*brokers):
            return [
                {"PartitionIndex": at, "BrokerIds": list(ids)} for at, ids in enumerate(brokers)
            ]

        create("assigned", one(**assigned, Assignments=parts([1], [1])), **check)
        create("assigned and counted", one(Assignments=parts([1])), **check)
        create("unknown broker", one(**assigned, Assignments=parts([2])), **check)
        create("broker twice", one(**assigned, Assignments=parts([1, 1])), **check)
        create("no broker", one(**assigned, Assignments=parts([])), **check)
        create("uneven", one(**assigned, Assignments=parts([1], [1, 2])), **check)
        gap = [{"PartitionIndex": 1, "BrokerIds": [1]}]
        create("gap", one(**assigned, Assignments=gap), **check)
        create("partition twice", one(**assigned, Assignments=parts([1]) * 2), **check)
        for name, value in [
            ("retention.ms", "1000"),
            ("retention.ms", "-2"),
            ("retention.ms", "abc"),
            ("retention.ms", ""),
            ("retention.ms", None),
            ("no.such.config", "1"),
            ("cleanup.policy", "delete,compact"),
            ("cleanup.policy", "shred"),
            ("cleanup.policy", ""),
            ("compression.type", "zstd"),
            ("compression.type", "rar"),
            ("segment.bytes", "1000"),
            ("segment.bytes", "2147483648"),
            ("min.insync.replicas", "0"),
            ("min.insync.replicas", "3"),
            ("min.cleanable.dirty.ratio", "1.5"),
            ("preallocate", "yes"),
            ("preallocate", "TRUE"),
            ("message.timestamp.type", "Never"),
            ("message.format.version", "2.0"),
            ("remote.storage.enable", "true"),
            ("local.retention.ms", "5"),
            ("compression.gzip.level", "10"),
            ("compression.gzip.level", "0"),
            ("compression.zstd.level", "22"),
            ("compression.lz4.level", "0"),
            ("max.message.bytes", "-1"),
            ("leader.replication.throttled.replicas", "*"),
            ("leader.replication.throttled.replicas", "0:1,x"),
            ("leader.replication.throttled.replicas", "0:1,3:2"),
            ("leader.replication.throttled.replicas", "none"),
            ("leader.replication.throttled.replicas", ""),
            ("follower.replication.throttled.replicas", "-1:2"),
            ("retention.ms", " 7 "),
            ("index.interval.bytes", "-1"),
            ("segment.ms", "0"),
            ("delete.retention.ms", "-1"),
            ("internal.segment.bytes", "1000"),
            ("max.compaction.lag.ms", "0"),
            ("min.compaction.lag.ms", "10"),
            ("unclean.leader.election.enable", "maybe"),
        ]:
            configs = [{"Name": name, "Value": value}]
            what = f"{name}={value}"
            pair.ask(what, 19, 7, {"Topics": one(Configs=configs), "timeoutMs": 5000, **check})
        twice = [{"Name": "retention.ms", "Value": "1"}, {"Name": "retention.ms", "Value": "2"}]
        pair.ask("config twice", 19, 7, {"Topics": one(Configs=twice), "timeoutMs": 5000, **check})
        for version in range(2, 8):
            configs = [{"Name": "retention.ms", "Value": "777"}]
            good = one(Name=f"new_{version}", Configs=configs, NumPartitions=2)
            mixed = good + one(Name="data") + one(Name="bad name!")
            pair.ask("mixed", 19, version, {"Topics": mixed, "timeoutMs": 5000})
            like = one(Name=f"new.{version}")
            pair.ask("alike", 19, version, {"Topics": like, "timeoutMs": 5000})
            pair.settle([f"new_{version}"])
            pair.ask("see", 3, 12, {"Topics": [{"Name": f"new_{version}"}]})
        pair.ask("too many", 19, 7, {"Topics": one(NumPartitions=10001), **check})
        pair.ask("far too many", 19, 7, {"Topics": one(NumPartitions=2_000_000), **check})

    def delete_topics(self, pair):
        """By name and by id."""
        for version in range(1, 7):
            name = f"dead-{version}"
            topic = {"Name": name, "NumPartitions": 1, "ReplicationFactor": 1}
            pair.ask("create", 19, 7, {"Topics": [topic], "timeoutMs": 5000})
            asked = [name, "nope", "bad name!"]
            pair.ask("named", 20, version, names_to_delete(version, asked))
            pair.ask("gone", 20, version, names_to_delete(version, [name]))
            pair.ask("twice", 20, version, names_to_delete(version, ["nope", "nope"]))
            pair.ask("none", 20, version, names_to_delete(version, []))
            pair.settle_gone(name)
            pair.ask("see", 3, 12, {"Topics": [{"Name": name}], "AllowAutoTopicCreation": False})
        for topic in (self.topic_id("data"), UNKNOWN_ID, ZERO_ID):
            for name in (None, "data"):
                if topic is ZERO_ID and name == "data":
                    continue
                if isinstance(topic, self.topic_id) and name is None:
                    continue
                asked = {"Topics": [{"Name": name, "TopicId": topic}], "TimeoutMs": 5000}
                pair.ask(f"id {show(topic)} name {name}", 20, 6, asked)
        topic = {"Name": "dead-id", "NumPartitions": 1, "ReplicationFactor": 1}
        pair.ask("create", 19, 7, {"Topics": [topic], "timeoutMs": 5000})
        asked = [{"Name": None, "TopicId": self.topic_id("dead-id")}]
        pair.ask("by id twice", 20, 6, {"Topics": asked * 2, "TimeoutMs": 5000})
        both = [*asked, {"Name": "dead-id", "TopicId": ZERO_ID}]
        pair.ask("by id and name", 20, 6, {"Topics": both, "TimeoutMs": 5000})
        pair.ask("by id", 20, 6, {"Topics": asked, "TimeoutMs": 5000})
        pair.ask("by id again", 20, 6, {"Topics": asked, "TimeoutMs": 5000})

    # Configs

    def describe_configs(self, pair):
        """Topics, brokers and what is neither."""

        def describe(what, kind, name, keys=None, **more):
            asked = {
                "Resources": [
                    {"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": keys}
                ],
                **more,
            }
            pair.versions(what, 32, asked)

        for synonyms in (False, True):
            for topic in ("data", "configured"):
                describe(f"topic {topic}, synonyms {synonyms}", 2, topic, IncludeSynonyms=synonyms)
        describe("topic with documentation", 2, "data", IncludeDocumentation=True)
        keys = ["retention.ms", "no.such", "max.message.bytes", "retention.ms"]
        describe("topic by keys", 2, "configured", keys, IncludeSynonyms=True)
        describe("topic, no keys", 2, "data", [])
        for name in ["nope", *BAD_NAMES]:
            describe(f"topic {name[:9]!r}", 2, name)
        broker_keys = [
            "num.partitions",
            "log.retention.ms",
            "log.retention.hours",
            "log.segment.bytes",
            "message.max.bytes",
            "min.insync.replicas",
            "log.cleanup.policy",
            "node.id",
            "process.roles",
            "auto.create.topics.enable",
            "compression.type",
            "no.such",
            "log.message.timestamp.after.max.ms",
            "offsets.topic.replication.factor",
            "unclean.leader.election.enable",
            "num.io.threads",
            "ssl.key.password",
            "listener.security.protocol.map",
            "log.retention.bytes",
            "log.roll.hours",
        ]
        describe("broker by keys", 4, "1", broker_keys, IncludeSynonyms=True)
        describe("broker by keys, documentation", 4, "1", broker_keys, IncludeDocumentation=True)
        describe("broker default", 4, "", IncludeSynonyms=True)
        for name in ("2", "x", "-1"):
            describe(f"broker {name}", 4, name)
        for kind, name in [
            (0, "x"),
            (1, "x"),
            (3, "g"),
            (5, "t"),
            (16, "m"),
            (32, "g"),
            (99, "y"),
            (16, ""),
            (32, ""),
        ]:
            describe(f"type {kind} name {name!r}", kind, name)
        twice = [
            {"ResourceType": 2, "ResourceName": "data", "ConfigurationKeys": ["retention.ms"]},
            {"ResourceType": 2, "ResourceName": "data", "ConfigurationKeys": ["segment.ms"]},
        ]
        pair.versions("topic twice", 32, {"Resources": twice})
        pair.versions("nothing", 32, {"Resources": []})

    # Records

    def produce_one(self, pair, what, topic, records, version=12, acks=-1, partition=0, **more):
        """A Produce of one batch."""
        data = {"Index": partition, "Records": records}
        asked = {
            "Acks": acks,
            "TimeoutMs": 5000,
            "TopicData": [
                {"Name": topic, "PartitionData": [data]}
                if version < 13
                else {"TopicId": self.topic_id(topic), "PartitionData": [data]}
            ],
            **more,
        }
        return pair.ask(what, 0, version, asked)

    def init_producer_id(self, pair):
        """Idempotent producers; transactional ones need a coordinator, which comes later."""
        pair.versions("new", 22, {"TransactionalId": None, "TransactionTimeoutMs": 1000})
        for timeout in (0, -1, 2_000_000_000):
            asked = {"TransactionalId": None, "TransactionTimeoutMs": timeout}
            pair.versions(f"timeout {timeout}", 22, asked)
        for producer, epoch in [(-1, 0), (5, -1), (5, 0), (-2, 3), (-1, -2)]:
            asked = {
                "TransactionalId": None,
                "TransactionTimeoutMs": 1000,
                "ProducerId": producer,
                "ProducerEpoch": epoch,
            }
            pair.versions(f"producer {producer} epoch {epoch}", 22, asked, first=3)
        pair.versions("empty id", 22, {"TransactionalId": "", "TransactionTimeoutMs": 1000})

    def produce(self, pair):
        """Good and bad batches, acks, topics, partitions, at each version."""
        for version in range(3, 14):
            self.produce_one(pair, "good", "data", batch(values=2), version)
            self.produce_one(pair, "leader only", "data", batch(), version, acks=1)
            self.produce_one(pair, "unknown partition", "data", batch(), version, partition=9)
            self.produce_one(pair, "negative partition", "data", batch(), version, partition=-1)
            for acks in (2, -2):
                self.produce_one(pair, f"acks {acks}", "data", batch(), version, acks=acks)
            if version < 13:
                for name in ("nope", *BAD_NAMES):
                    self.produce_one(pair, f"topic {name[:9]!r}", name, batch(), version)
            else:
                for topic in (UNKNOWN_ID, ZERO_ID):
                    data = [{"Index": 0, "Records": batch()}]
                    asked = {
                        "Acks": -1,
                        "TimeoutMs": 5000,
                        "TopicData": [{"TopicId": topic, "PartitionData": data}],
                    }
                    pair.ask(f"id {show(topic)}", 0, version, asked)
            self.produce_one(pair, "bad crc", "bad", batch(bad_crc=True), version)
            self.produce_one(pair, "gzip", "bad", batch(codec=1, values=3), version)
            pair.ask("nothing", 0, version, {"Acks": -1, "TimeoutMs": 5000, "TopicData": []})
            empty = {"PartitionData": []}
            empty.update({"Name": "bad"} if version < 13 else {"TopicId": self.topic_id("bad")})
            asked = {"Acks": -1, "TimeoutMs": 5000, "TopicData": [empty]}
            pair.ask("no partitions", 0, version, asked)
        self.bad_batches(pair)
        self.topic_rules(pair)
        for version in (9, 12, 13):
            self.produce_one(
                pair,
                "transactional batch alone",
                "bad",
                batch(attributes=16, producer_id=1, producer_epoch=0, sequence=0),
                version,
            )
        # acks=0: no answer for a good one, a closed connection for a bad one.
        self.produce_one(pair, "acks 0, bad crc", "bad", batch(bad_crc=True), 9, acks=0)

    def bad_batches(self, pair):
        """One wrong thing each."""
        good = batch(values=3)
        one = record(0)
        for what, records in [
            ("batch length 0", good[:8] + bytes(4) + good[12:]),
            ("batch length 48", good[:8] + b"\0\0\0\x30" + good[12:]),
            ("batch length -1", good[:8] + b"\xff" * 4 + good[12:]),
            ("batch length 2^31-1", good[:8] + b"\x7f\xff\xff\xff" + good[12:]),
            ("no bytes", b""),
            ("11 bytes", b"\0" * 11),
            ("60 bytes", good[:60]),
            ("cut", good[:-1]),
            ("one byte more", good + b"\0"),
            ("two batches", good + good),
            ("magic 0", batch(magic=0)),
            ("magic 1", batch(magic=1)),
            ("magic 3", batch(magic=3)),
            ("magic -1", batch(magic=-1)),
            ("base offset 7", batch(base_offset=7)),
            ("leader epoch 5", batch(leader_epoch=5)),
            ("count 0", batch(records=b"", count=0, last_delta=0)),
            ("count 0, delta -1", batch(records=b"", count=0, last_delta=-1)),
            ("count 2 of 1", batch(records=one, count=2)),
            ("count 1 of 2", batch(records=one + record(1), count=1)),
            ("count -1", batch(records=one, count=-1, last_delta=0)),
            ("delta 5", batch(records=one, count=1, last_delta=5)),
            ("delta -1", batch(records=one, count=1, last_delta=-1)),
            ("record deltas 0 0", batch(records=one + one, count=2)),
            ("record delta 1 first", batch(records=record(1) + record(0), count=2)),
            ("control", batch(attributes=32)),
            ("log append time", batch(attributes=8)),
            ("delete horizon", batch(attributes=64)),
            ("reserved bits", batch(attributes=0x780)),
            ("codec 5", batch(attributes=5)),
            ("codec 7", batch(attributes=7)),
            ("codec said, not done", batch(attributes=1)),
            ("max timestamp below", batch(max_timestamp=1)),
            ("max timestamp above", batch(max_timestamp=1_800_000_000_000)),
            ("timestamp -1", batch(base_timestamp=-1, max_timestamp=-1)),
            ("timestamp -2", batch(base_timestamp=-2, max_timestamp=-2)),
            ("a key that ends late", batch(records=b"\x10\0\0\0\x20kv\0\0", count=1)),
            ("record length -1", batch(records=b"\x01", count=1)),
            ("record of no bytes", batch(records=b"\0", count=1)),
            ("header count -1", batch(records=b"\x0e\0\0\0\x02k\x02v\x01"[:9], count=1)),
            ("null header key", batch(records=record(0, headers=[(None, b"x")]), count=1)),
            ("header with null value", batch(records=record(0, headers=[(b"h", None)]), count=1)),
            ("null key and value", batch(records=record(0, key=None, value=None), count=1)),
            ("gzip of nothing", batch(records=b"", count=0, codec=1)),
            ("gzip cut", cut_gzip()),
        ]:
            for version in (7, 13):
                self.produce_one(pair, what, "odd" if what in KNOWN else "bad", records, version)

    def topic_rules(self, pair):
        """What a topic's own configs refuse or change."""
        for version in (3, 8, 12, 13):
            self.produce_one(pair, "too large", "configured", batch(values=20), version)
            keyless = batch(records=record(0, key=None), count=1)
            self.produce_one(pair, "no key", "compacted", keyless, version)
            some = record(0) + record(1, key=None) + record(2, key=None)
            self.produce_one(
                pair, "some without key", "compacted", batch(records=some, count=3), version
            )
            self.produce_one(pair, "log append time", "stamped", batch(values=3), version)
            self.produce_one(pair, "too old", "strict", batch(values=3), version)
            self.produce_one(pair, "to be zipped", "zipped", batch(values=3), version)
        self.produce_one(pair, "internal topic", "__consumer_offsets", batch(), 12)
        self.produce_one(pair, "metadata topic", "__cluster_metadata", batch(), 12)

    def sequences(self, pair):
        """Deduplication and its errors."""

        def first(answer):
            return answer["ProducerId"]

        asked = {"TransactionalId": None, "TransactionTimeoutMs": 1000}
        pair.ask("a producer", 22, 5, asked, keep={"producer": first})

        def send(what, sequence, epoch=0, values=2, version=12):
            answers = []
            for side in (pair.kafka, pair.ours):
                records = batch(
                    producer_id=side.kept["producer"],
                    producer_epoch=epoch,
                    sequence=sequence,
                    values=values,
                )
                side.kept["records"] = records
            answers = self.produce_one(pair, what, "seq", self.kept("records"), version)
            return answers

        send("first", 0)
        send("gap", 5)
        for sequence in range(2, 16, 2):
            send(f"{sequence}", sequence)
        for sequence in (14, 12, 8, 6, 4, 0):
            send(f"again {sequence}", sequence)
        send("overlap", 15)
        send("again, other count", 14, values=3)
        send("new epoch, sequence 4", 4, epoch=1)
        send("new epoch", 0, epoch=1)
        send("old epoch", 16, epoch=0)
        send("epoch -1", 0, epoch=-1)
        send("sequence -1", -1, epoch=1)
        send("sequence -2", -2, epoch=1)
        send("near the end", 2147483646, epoch=2)

    # Offsets

    def list_offsets(self, pair):
        """Special times, times, unknown partitions, epochs."""

        def ask(what, time, first=1, topic="data", partition=0, **more):
            fields = {key: more.pop(key) for key in ("CurrentLeaderEpoch",) if key in more}
            part = {"PartitionIndex": partition, "Timestamp": time, **fields}
            asked = {
                "ReplicaId": -1,
                "Topics": [{"Name": topic, "Partitions": [part]}],
                "TimeoutMs": 1000,
                **more,
            }
            pair.versions(what, 2, asked, first=first)

        for time in range(-8, 1):
            ask(f"time {time}", time)
            ask(f"time {time} of an empty partition", time, topic="fresh")
        base = 1_700_000_000_000
        for time in (
            1,
            base - 1,
            base,
            base + 1,
            base + 4000,
            base + 4001,
            base + 59_999,
            base + 60_001,
            base + 124_000,
            base + 124_001,
            base + 9_000_000_000,
        ):
            ask(f"time {time}", time)
        for isolation in (1, 2, -1):
            for time in (-1, -2, -3, base + 1):
                ask(f"isolation {isolation} time {time}", time, first=2, IsolationLevel=isolation)
        ask("unknown partition", -1, partition=9)
        ask("negative partition", -1, partition=-1)
        for name in ("nope", *BAD_NAMES):
            ask(f"topic {name[:9]!r}", -1, topic=name)
        for epoch in (-1, -2, 0, 1, 99):
            ask(f"leader epoch {epoch}", -1, first=4, CurrentLeaderEpoch=epoch)
        for replica in (-2, -3, 1, 2):
            for time in (-1, -2, base + 1):
                ask(f"replica {replica} time {time}", time, ReplicaId=replica)
        twice = [
            {"PartitionIndex": 0, "Timestamp": -1},
            {"PartitionIndex": 0, "Timestamp": -2},
            {"PartitionIndex": 1, "Timestamp": -1},
        ]
        topics = [{"Name": "data", "Partitions": twice}]
        pair.versions("twice", 2, {"ReplicaId": -1, "Topics": topics})
        pair.versions("nothing", 2, {"ReplicaId": -1, "Topics": []})
        empty = [{"Name": "data", "Partitions": []}]
        pair.versions("no partitions", 2, {"ReplicaId": -1, "Topics": empty})
        stamped = [{"Name": "stamped", "Partitions": [{"PartitionIndex": 0, "Timestamp": 1}]}]
        pair.versions(
            "log append time", 2, {"ReplicaId": -1, "Topics": stamped}, ignore=("Timestamp",)
        )

    def offset_for_leader_epoch(self, pair):
        """Epochs known and not."""
        for topic, partition in [("data", 0), ("fresh", 0), ("data", 9), ("nope", 0), ("", 0)]:
            for epoch in (-1, 0, 1, 99):
                for current in (-1, 0, 1):
                    for replica in (-2, -1, 1, 2):
                        part = {
                            "Partition": partition,
                            "LeaderEpoch": epoch,
                            "CurrentLeaderEpoch": current,
                        }
                        asked = {
                            "ReplicaId": replica,
                            "Topics": [{"Topic": topic, "Partitions": [part]}],
                        }
                        what = (
                            f"{topic}-{partition} epoch {epoch} current {current} replica {replica}"
                        )
                        pair.versions(what, 23, asked)
        pair.versions("nothing", 23, {"ReplicaId": -1, "Topics": []})
        pair.versions("no partitions", 23, {"Topics": [{"Topic": "data", "Partitions": []}]})
        part = {"Partition": 0, "LeaderEpoch": 0, "CurrentLeaderEpoch": -1}
        twice = [{"Topic": "data", "Partitions": [part, part]}]
        pair.versions("twice", 23, {"ReplicaId": -1, "Topics": twice})

    def fetch_request(self, version, partitions, **more):
        """A Fetch; partitions are (topic, partition, offset, more)."""
        topics = []
        for topic, partition, offset, fields in partitions:
            part = {
                "Partition": partition,
                "FetchOffset": offset,
                "PartitionMaxBytes": 1 << 20,
                **fields,
            }
            if isinstance(topic, uuid.UUID):
                name = {"TopicId": topic}
            else:
                name = {"Topic": topic}
                if version >= 13:
                    name = {"TopicId": self.topic_id(topic)}
            topics.append({**name, "Partitions": [part]})
        asked = {"MaxWaitMs": 0, "MinBytes": 0, "Topics": topics, **more}
        if version < 15:
            asked["ReplicaId"] = asked.pop("Replica", -1)
        else:
            replica = asked.pop("Replica", None)
            if replica is not None:
                asked["ReplicaState"] = {"ReplicaId": replica}
        return asked

    def fetch(self, pair):
        """Offsets, limits, epochs, isolation, unknown things."""

        def ask(what, partitions, first=4, last=18, ignore=(), **more):
            for version in range(first, last + 1):
                asked = fitting(1, version, self.fetch_request(version, partitions, **more))
                pair.ask(what, 1, version, asked, ignore=ignore)

        for offset in (0, 1, 4, 5, 14, -1, 1000, 1 << 60):
            ask(f"offset {offset}", [("data", 0, offset, {})])
        ask("empty partition", [("fresh", 0, 0, {})])
        ask("both partitions", [("data", 0, 3, {}), ("data", 1, 0, {})])
        for size in (0, 1, 100, 200, 1 << 30, -1):
            two = [
                ("data", 0, 0, {"PartitionMaxBytes": size}),
                ("seq", 0, 0, {"PartitionMaxBytes": size}),
            ]
            ask(f"partition bytes {size}", two)
            ask(f"bytes {size}", [("data", 0, 0, {}), ("seq", 0, 0, {})], MaxBytes=size)
        for isolation in (1, 2, -1):
            ask(f"isolation {isolation}", [("data", 0, 0, {})], IsolationLevel=isolation)
        ask("unknown partition", [("data", 9, 0, {})])
        ask("negative partition", [("data", -1, 0, {})])
        for name in ("nope", "", "bad name!"):
            ask(f"topic {name!r}", [(name, 0, 0, {})], last=12)
        ask("unknown id", [(UNKNOWN_ID, 0, 0, {})], first=13)
        ask("zero id", [(ZERO_ID, 0, 0, {})], first=13)
        ask("unknown and known", [(UNKNOWN_ID, 0, 0, {}), ("data", 0, 0, {})], first=13)
        for epoch in (-1, -2, 0, 1, 99):
            ask(f"leader epoch {epoch}", [("data", 0, 0, {"CurrentLeaderEpoch": epoch})], first=9)
            ask(
                f"last fetched epoch {epoch}",
                [("data", 0, 5, {"LastFetchedEpoch": epoch, "CurrentLeaderEpoch": 0})],
                first=12,
            )
        ask("log start offset", [("data", 0, 0, {"LogStartOffset": 3})], first=5)
        ask("replica -2", [("data", 0, 0, {})], Replica=-2)
        for replica in (1, 2):
            ask(f"replica {replica}", [("data", 0, 0, {})], Replica=replica)
        ask("nothing", [])
        ask("partition twice", [("data", 0, 0, {}), ("data", 0, 5, {})])
        ask("rack", [("data", 0, 0, {})], first=11, RackId="somewhere")
        ask("zstd for the old", [("zipped", 0, 0, {})])
        ask("waiting", [("fresh", 0, 0, {})], first=17, MaxWaitMs=300, MinBytes=1)
        ask("wrong cluster", [("data", 0, 0, {})], first=12, ClusterId="another")

    def fetch_sessions(self, pair):
        """Full, incremental, forgotten, wrong and closed sessions."""

        def session(answer):
            return answer["SessionId"]

        for version in (7, 9, 12, 13, 18):

            def ask(what, partitions, epoch, number=None, forget=(), keep=None, version=version):
                asked = self.fetch_request(version, partitions, SessionEpoch=epoch)
                asked["SessionId"] = self.kept("session") if number is None else number
                if forget:
                    gone = [
                        {"Topic": name, "Partitions": [0]}
                        if version < 13
                        else {"TopicId": self.topic_id(name), "Partitions": [0]}
                        for name in forget
                    ]
                    asked["ForgottenTopicsData"] = gone
                pair.ask(what, 1, version, fitting(1, version, asked), keep=keep)

            end = ("data", 0, 10_000, {})
            ask("full", [("data", 0, 0, {}), ("fresh", 0, 0, {})], 0, 0, keep={"session": session})
            ask("incremental, none", [], 1)
            ask("incremental, moved", [("data", 0, 5, {})], 2)
            ask("out of range stays", [end], 3)
            ask("out of range again", [], 4)
            ask("forget", [], 5, forget=["data"])
            ask("after forgetting", [], 6)
            ask("old epoch", [], 6)
            ask("skipped epoch", [], 9)
            ask("unknown session", [], 1, 123456)
            ask("add", [("seq", 0, 0, {})], 7)
            ask("add unknown partition", [("data", 9, 0, {})], 8)
            ask("forget unknown", [], 9, forget=["bad"])
            ask("close", [], -1)
            ask("closed", [], 10)
            ask(
                "full again, then full with its id",
                [("fresh", 0, 0, {})],
                0,
                0,
                keep={"session": session},
            )
            ask("replaced", [("data", 0, 3, {})], 0, keep={"session": session})
            ask("of the new", [], 1)
            ask("sessionless", [("data", 0, 3, {})], -1, 0)
            ask("no session, epoch 5", [("data", 0, 3, {})], 5, 0)
            ask("full without partitions", [], 0, 0)

    def controller(self, pair):
        """What a broker asks of its controller, and what clients may ask there too. Last of all: it
        registers a second broker."""
        controllers = pair.at_controllers()
        less = ("ApiKeys", "FinalizedFeatures", "FinalizedFeaturesEpoch", "SupportedFeatures")
        name = {"ClientSoftwareName": "probe", "ClientSoftwareVersion": "1.0"}
        controllers.versions("plain", 18, name, ignore=less)
        topic = {"Name": "by-controller", "NumPartitions": 2, "ReplicationFactor": 1}
        for what, more in [("would create", {"validateOnly": True}), ("create", {}), ("again", {})]:
            controllers.ask(what, 19, 7, {"Topics": [topic], **more})
        gone = [{"Name": "by-controller", "TopicId": ZERO_ID}, {"Name": "nope", "TopicId": ZERO_ID}]
        controllers.ask("delete", 20, 6, {"Topics": gone, "TimeoutMs": 5000})
        for broker in (1, 9, -1):
            for epoch in (-1, 0, 123_456):
                who = f"broker {broker} epoch {epoch}"
                fields = {"BrokerId": broker, "BrokerEpoch": epoch}
                controllers.ask(f"ids for {who}", 67, 0, fields)
                for more in ({}, {"WantFence": True}, {"WantShutDown": True}):
                    what = f"heartbeat of {who} {more}"
                    controllers.versions(what, 63, {**fields, **more})
        self.registrations(controllers)
        pair.asked += controllers.asked

    def registrations(self, controllers):
        """Brokers that may not register, and one that may."""
        at = {"Name": "PLAINTEXT", "Host": "127.0.0.1", "Port": 9, "SecurityProtocol": 0}
        good = {
            "BrokerId": 9,
            "ClusterId": CLUSTER,
            "IncarnationId": UNKNOWN_ID,
            "Listeners": [at],
            "Features": [
                {"Name": "metadata.version", "MinSupportedVersion": 7, "MaxSupportedVersion": 33},
                {"Name": "kraft.version", "MinSupportedVersion": 0, "MaxSupportedVersion": 1},
                *(
                    {"Name": name, "MinSupportedVersion": 0, "MaxSupportedVersion": most}
                    for name, most in FEATURES.items()
                ),
            ],
            "LogDirs": [uuid.UUID(int=1 << 100)],
        }
        old = [{"Name": "metadata.version", "MinSupportedVersion": 7, "MaxSupportedVersion": 20}]
        for what, more in [
            ("another cluster", {"ClusterId": "another"}),
            ("a live broker's id", {"BrokerId": 1}),
            ("no features", {"Features": []}),
            ("old features", {"Features": old}),
            ("no log directory", {"LogDirs": []}),
            ("a log directory twice", {"LogDirs": good["LogDirs"] * 2}),
            ("no listener", {"Listeners": []}),
            ("migrating", {"IsMigratingZkBroker": True}),
        ]:
            controllers.versions(what, 62, {**good, **more}, ignore=("BrokerEpoch",))

    # At random, the same for both

    def random_log(self, pair):
        """Many small segments with times in no order: look-ups and fetches anywhere."""
        random = Random(4)
        configs = {"internal.segment.bytes": "3000", "index.interval.bytes": "300"}
        topic = {
            "Name": "long",
            "NumPartitions": 1,
            "ReplicationFactor": 1,
            "Configs": [{"Name": name, "Value": value} for name, value in configs.items()],
        }
        pair.ask("the topic", 19, 7, {"Topics": [topic]})
        pair.settle(["long"])
        start = 1_700_000_000_000
        end = 0
        for _ in range(200):
            values = random.randrange(1, 6)
            time = start + random.randrange(100) * 1000
            codec = random.choice([0, 0, 1])
            records = batch(values=values, base_timestamp=time, codec=codec)
            self.produce_one(pair, "filling", "long", records)
            end += values
        for _ in range(300):
            time = random.choice([start + random.randrange(-1000, 110_000), -3, -2, -1])
            part = {"PartitionIndex": 0, "Timestamp": time}
            topics = [{"Name": "long", "Partitions": [part]}]
            pair.ask(f"time {time}", 2, 11, {"ReplicaId": -1, "Topics": topics})
        for _ in range(300):
            offset = random.randrange(end + 2)
            size = random.choice([1, 50, 100, 200, 500, 1000, 5000, 100_000])
            limits = {"PartitionMaxBytes": size}
            more = random.choice([{}, {"MaxBytes": random.randrange(1, 2000)}])
            asked = self.fetch_request(12, [("long", 0, offset, limits)], **more)
            pair.ask(f"offset {offset}, {size} bytes, {more}", 1, 12, fitting(1, 12, asked))

    def random_sequences(self, pair):
        """Producers that repeat, skip, overlap and change their epochs."""
        random = Random(5)
        topic = {"Name": "mixed", "NumPartitions": 1, "ReplicationFactor": 1}
        pair.ask("the topic", 19, 7, {"Topics": [topic]})
        pair.settle(["mixed"])
        # Ids far above those that either server has given.
        state = {producer: [0, 0, []] for producer in range(1_000_000, 1_000_004)}
        for number in range(600):
            producer = random.choice(list(state))
            epoch, following, sent = state[producer]
            values = random.randrange(1, 4)
            kind = random.randrange(10)
            sequence = following
            if kind == 0:
                sequence = following + random.randrange(1, 4)
            elif kind == 1 and sent:
                sequence, values = random.choice(sent[-5:])
            elif kind == 2 and following > 0:
                sequence = following - 1
            elif kind == 3:
                epoch += random.choice([-1, 1])
                sequence = random.choice([0, following])
            if epoch < 0 or 0 < sequence < following and (sequence, values) not in sent[-5:]:
                # What Kafka calls out of order and highwater a duplicate: see KNOWN.
                continue
            records = batch(
                producer_id=producer, producer_epoch=epoch, sequence=sequence, values=values
            )
            what = f"{number}: producer {producer} epoch {epoch} sequence {sequence} x {values}"
            answers = self.produce_one(pair, what, "mixed", records)
            row = answers[0]["Responses"][0]["PartitionResponses"][0]
            if row["ErrorCode"] == 0 and (epoch, sequence) != (state[producer][0], following):
                if epoch != state[producer][0]:
                    state[producer] = [epoch, sequence + values, [(sequence, values)]]
            elif row["ErrorCode"] == 0:
                state[producer] = [epoch, sequence + values, [*sent, (sequence, values)]]
        everything = [("mixed", 0, 0, {})]
        asked = fitting(1, 12, self.fetch_request(12, everything))
        pair.ask("everything", 1, 12, asked)


def cut_gzip():
    """A gzip stream without its end."""
    whole = batch(values=3, codec=1)
    return batch(records=whole[61:-9], count=3, attributes=1)


def names_to_delete(version, names):
    """A DeleteTopics request by name."""
    if version < 6:
        return {"TopicNames": names, "TimeoutMs": 5000}
    return {"Topics": [{"Name": name, "TopicId": ZERO_ID} for name in names], "TimeoutMs": 5000}


def fit_names(version, topics):
    """A Metadata request that may create."""
    return {"Topics": topics} if version < 4 else {"Topics": topics, "AllowAutoTopicCreation": True}
