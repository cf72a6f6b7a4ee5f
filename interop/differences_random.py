"""Odd requests by chance: arguments from pools of good, odd and wrong values, the same to both.

Each function asks one API some hundred times; its seed is fixed, so that a run can be repeated.
"""

from random import Random

import wire
from batches import batch
from differences_common import UNKNOWN_ID, ZERO_ID
from wire import fitting

NAMES = ["data", "fresh", "seq", "configured", "compacted", "nope", "bad name!", ".", "a" * 250]
PARTITIONS = [0, 0, 0, 1, 2, 9, -1, 2**31 - 1, -(2**31)]
OFFSETS = [0, 1, 3, 5, 14, 15, 16, -1, -2, 1000, 2**63 - 1, -(2**63)]
EPOCHS = [-1, -1, 0, 0, 1, 2, 99, -2, 2**31 - 1, -(2**31)]
SIZES = [0, 1, 60, 100, 200, 1 << 20, 2**31 - 1]
TIMES = [-1, -2, -3, -4, -5, -6, -7, -100, 0, 1_700_000_000_000, 1_700_000_060_001, 2**63 - 1]


def cases(stories):
    """Names and functions; they need the topics of `stories`."""
    chance = Chance(stories)
    return [
        ("random Metadata", chance.metadata),
        ("random ListOffsets", chance.list_offsets),
        ("random OffsetForLeaderEpoch", chance.offset_for_leader_epoch),
        ("random Fetch", chance.fetch),
        ("random fetch sessions", chance.fetch_sessions),
        ("random DescribeTopicPartitions", chance.describe_topic_partitions),
        ("random DescribeConfigs", chance.describe_configs),
        ("random CreateTopics", chance.create_topics),
        ("random DeleteTopics", chance.delete_topics),
        ("random InitProducerId", chance.init_producer_id),
        ("random Produce", chance.produce),
        ("long texts", chance.long_texts),
    ]


class Chance:
    """One function per API."""

    def __init__(self, stories):
        self.stories = stories

    def topic(self, random):
        """An id, or a name whose id each side puts in."""
        if random.random() < 0.8:
            return self.stories.topic_id(random.choice(["data", "fresh", "seq", "long"]))
        return random.choice([UNKNOWN_ID, ZERO_ID])

    def ask(self, pair, random, key, values, first=0, last=99):
        """At a version by chance."""
        low, high = wire.REQUESTS[key].versions
        version = random.randrange(max(low, first), min(high, last) + 1)
        asked = fitting(key, version, values)
        return pair.ask(f"{asked}", key, version, asked)

    def metadata(self, pair):
        """Names and ids, known and unknown, twice, none and all."""
        random = Random(11)
        for _ in range(300):
            topics = [
                {"Name": random.choice(NAMES)} for _ in range(random.choice([0, 1, 1, 2, 4]))
            ]
            if random.random() < 0.3:
                topics = [
                    {"Name": None, "TopicId": self.topic(random)}
                    for _ in range(random.randrange(1, 4))
                ]
            by_id = any("TopicId" in topic for topic in topics)
            if by_id and any(topic["TopicId"] == ZERO_ID for topic in topics):
                continue  # See KNOWN: a topic without name and id.
            asked = {
                "Topics": None if random.random() < 0.05 else topics,
                "AllowAutoTopicCreation": False,
                "IncludeClusterAuthorizedOperations": random.random() < 0.3,
                "IncludeTopicAuthorizedOperations": random.random() < 0.3,
            }
            # Below v4 every topic that is named and not there is made.
            first = 12 if by_id else 4
            self.ask(pair, random, 3, asked, first=first)

    def list_offsets(self, pair):
        """Every special time, isolation levels, epochs, replicas."""
        random = Random(12)
        for _ in range(400):
            topics = []
            for _ in range(random.choice([0, 1, 1, 2])):
                parts = [
                    {
                        "PartitionIndex": random.choice(PARTITIONS),
                        "CurrentLeaderEpoch": random.choice(EPOCHS),
                        "Timestamp": random.choice(TIMES),
                    }
                    for _ in range(random.choice([0, 1, 1, 2, 3]))
                ]
                topics.append({"Name": random.choice(NAMES), "Partitions": parts})
            asked = {
                "ReplicaId": random.choice([-1, -1, -1, -2]),
                "IsolationLevel": random.choice([0, 0, 1, 1, 2, -1]),
                "Topics": topics,
                "TimeoutMs": random.choice([0, 1000, -1, 2**31 - 1]),
            }
            if len({topic["Name"] for topic in topics}) == len(topics):
                self.ask(pair, random, 2, asked)

    def offset_for_leader_epoch(self, pair):
        """Epochs of leaders and of records."""
        random = Random(13)
        for _ in range(300):
            topics = []
            for name in random.sample(NAMES, random.choice([0, 1, 1, 2])):
                parts = [
                    {
                        "Partition": random.choice(PARTITIONS),
                        "CurrentLeaderEpoch": random.choice(EPOCHS),
                        "LeaderEpoch": random.choice(EPOCHS),
                    }
                    for _ in range(random.choice([0, 1, 1, 2]))
                ]
                topics.append({"Topic": name, "Partitions": parts})
            asked = {"ReplicaId": random.choice([-2, -1, -1, 1, 5]), "Topics": topics}
            self.ask(pair, random, 23, asked)

    def fetch_wanted(self, random, version):
        """Partitions for a fetch, each once: see KNOWN for more."""
        wanted, seen = [], set()
        for _ in range(random.choice([0, 1, 1, 2, 3, 5])):
            topic = random.choice(["data", "fresh", "seq", "long"])
            if random.random() < 0.2:
                topic = UNKNOWN_ID if version >= 13 else "nope"
            number = random.choice([0, 0, 0, 1, 9, -1])
            if (topic, number) in seen:
                continue
            seen.add((topic, number))
            more = {
                "PartitionMaxBytes": random.choice(SIZES),
                "CurrentLeaderEpoch": random.choice([-1, -1, 0, 0, 1, -2]),
                "LogStartOffset": random.choice([-1, 0, 5, -9]),
            }
            if version >= 12 and random.random() < 0.3:
                more["LastFetchedEpoch"] = random.choice(EPOCHS)
            wanted.append((topic, number, random.choice(OFFSETS), more))
        return wanted

    def fetch(self, pair):
        """Offsets, limits, epochs, isolation levels, readers."""
        random = Random(14)
        for _ in range(600):
            version = random.randrange(4, 19)
            more = {
                "MaxBytes": random.choice(SIZES),
                "IsolationLevel": random.choice([0, 0, 1, 1, 2]),
                "MinBytes": random.choice([0, 1, -1]),
                "RackId": random.choice(["", "r"]),
            }
            if random.random() < 0.1:
                more["Replica"] = random.choice([1, 2, 77, -2])
            wanted = self.fetch_wanted(random, version)
            asked = fitting(1, version, self.stories.fetch_request(version, wanted, **more))
            what = f"{wanted} {more}".replace(str(UNKNOWN_ID), "unknown")
            pair.ask(what, 1, version, asked, merge=True)

    def fetch_sessions(self, pair):
        """Long stories of sessions: what is added, moved, forgotten, of which session and epoch."""
        for seed, version in enumerate([7, 11, 12, 13, 15, 17, 18]):
            random = Random(150 + seed)
            epoch, known = 0, []
            pair.fresh()
            for number in range(60):
                wanted = self.fetch_wanted(random, version)
                gone = random.sample(known, min(len(known), random.choice([0, 0, 1, 2])))
                odd = random.random()
                asked_epoch = epoch if odd > 0.1 else random.choice([epoch + 1, 1, 5, -1, -2])
                is_new = number == 0 or asked_epoch == -1
                session = 0 if number == 0 else self.stories.kept("random session")
                if odd > 0.97:
                    session, asked_epoch = 0, 0
                asked = self.stories.fetch_request(version, wanted, SessionEpoch=asked_epoch)
                asked["SessionId"] = session
                if gone and not is_new and asked_epoch > 0:
                    asked["ForgottenTopicsData"] = [
                        {"TopicId": self.stories.topic_id(name), "Partitions": [part]}
                        if version >= 13
                        else {"Topic": name, "Partitions": [part]}
                        for name, part in gone
                    ]
                what = f"session story {version}, step {number}"
                keep = {"random session": lambda answer: answer["SessionId"]}
                if number > 0 and asked_epoch != 0:
                    keep = None
                asked = fitting(1, version, asked)
                answers = pair.ask(what, 1, version, asked, keep=keep, merge=True)
                if isinstance(answers[0], str) or answers[0]["ErrorCode"] != 0:
                    if asked_epoch == -1:
                        epoch = 0
                    continue
                if asked_epoch == -1:
                    epoch = 0
                else:
                    epoch = asked_epoch + 1
                known = [(topic, part) for topic, part, _, _ in wanted if topic in NAMES]
                known = [(topic, part) for topic, part in known if topic != "nope"]

    def describe_topic_partitions(self, pair):
        """Names, cursors, limits."""
        random = Random(16)
        names = sorted(NAMES)
        for _ in range(250):
            cursor = None
            if random.random() < 0.6:
                cursor = {
                    "TopicName": random.choice(names + ["", "e", "zz"]),
                    "PartitionIndex": random.choice([0, 0, 1, 2, 5, -1, -(2**31), 1 << 30]),
                }
            asked = {
                "Topics": [{"Name": name} for name in random.choices(names, k=random.randrange(4))],
                "ResponsePartitionLimit": random.choice([1, 2, 3, 2000, 0, -1, 2**31 - 1]),
                "Cursor": cursor,
            }
            self.ask(pair, random, 75, asked)

    def describe_configs(self, pair):
        """Kinds (8: loggers, which highwater has none of), names, keys, what else is to be told."""
        random = Random(17)
        keys = ["retention.ms", "cleanup.policy", "nope", "", "num.partitions", "broker.id"]
        for _ in range(250):
            resources, seen = [], set()
            for _ in range(random.choice([0, 1, 1, 2, 3])):
                kind = random.choice([2, 2, 2, 2, 4, 4, 4, 0, 77, -1])
                name = random.choice(["data", "configured", "nope", "", "1", "2", "-1", "x", "01"])
                wanted = random.choice([None, [], random.choices(keys, k=2), ["retention.ms"]])
                if kind == 4 and (not wanted or name == "01") or (kind, name) in seen:
                    continue  # The whole list of a broker has a case of its own.
                seen.add((kind, name))
                resources.append(
                    {"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": wanted}
                )
            asked = {
                "Resources": resources,
                "IncludeSynonyms": random.random() < 0.5,
                "IncludeDocumentation": random.random() < 0.3,
            }
            self.ask(pair, random, 32, asked)

    def create_topics(self, pair):
        """Only whether it could be: numbers, factors, assignments, configs."""
        random = Random(18)
        configs = [
            ("retention.ms", "1000"),
            ("retention.ms", "-1"),
            ("retention.ms", "-2"),
            ("retention.ms", ""),
            ("retention.ms", None),
            ("cleanup.policy", "delete,compact"),
            ("cleanup.policy", "nope"),
            ("segment.bytes", "1"),
            ("min.insync.replicas", "0"),
            ("max.message.bytes", "2147483648"),
            ("nope", "1"),
            ("", ""),
        ]
        for _ in range(400):
            topics = []
            for _ in range(random.choice([0, 1, 1, 2, 3])):
                topic = {
                    "Name": random.choice(["new", "new.er", "new_er", *NAMES]),
                    "NumPartitions": random.choice([1, 1, 3, -1, 0, -2, 2**31 - 1, 10_001]),
                    "ReplicationFactor": random.choice([1, 1, -1, 0, 2, -2, 32767]),
                    "Assignments": [],
                    "Configs": [
                        {"Name": name, "Value": value}
                        for name, value in random.sample(configs, random.choice([0, 0, 1, 2]))
                    ],
                }
                if random.random() < 0.25:
                    topic["Assignments"] = [
                        {
                            "PartitionIndex": random.choice([0, 0, 1, 2, -1]),
                            "BrokerIds": random.choice([[1], [1], [2], [], [1, 1], [1, 2], [-1]]),
                        }
                        for _ in range(random.randrange(1, 4))
                    ]
                    if random.random() < 0.8:
                        topic.update(NumPartitions=-1, ReplicationFactor=-1)
                topics.append(topic)
            asked = {"Topics": topics, "timeoutMs": 5000, "validateOnly": True}
            self.ask(pair, random, 19, asked)

    def delete_topics(self, pair):
        """What is not there, or not to be deleted."""
        random = Random(19)
        names = ["nope", "bad name!", ".", "a" * 250, "never"]
        for _ in range(150):
            count = random.choice([0, 1, 1, 2, 3])
            if random.random() < 0.5:
                asked = {"TopicNames": random.choices(names, k=count), "TimeoutMs": 1000}
                self.ask(pair, random, 20, asked, last=5)
                continue
            topics = [
                {"Name": random.choice(names), "TopicId": ZERO_ID}
                if random.random() < 0.6
                else {"Name": None, "TopicId": UNKNOWN_ID}
                for _ in range(count)
            ]
            self.ask(pair, random, 20, {"Topics": topics, "TimeoutMs": 1000}, first=6)

    def init_producer_id(self, pair):
        """Without a transactional id: ids and epochs that are told."""
        random = Random(20)
        for _ in range(100):
            asked = {
                "TransactionalId": random.choice([None, None, ""]),
                "TransactionTimeoutMs": random.choice([0, -1, 1000, 2**31 - 1]),
                "ProducerId": random.choice([-1, -1, 0, 1000, 2**63 - 1, -2]),
                "ProducerEpoch": random.choice([-1, -1, 0, 5, 32767, -2]),
            }
            self.ask(pair, random, 22, asked)

    def produce(self, pair):
        """Topics and partitions that are there or not, acks, time-outs, no or empty records."""
        random = Random(21)
        good = batch(values=2)
        topic = {"Name": "oddments", "NumPartitions": 1, "ReplicationFactor": 1}
        pair.ask("the topic", 19, 7, {"Topics": [topic]})
        pair.settle(["oddments"])
        for _ in range(300):
            version = random.randrange(3, 14)
            topics, seen = [], set()
            for _ in range(random.choice([0, 1, 1, 2])):
                name = random.choice(["oddments", "fresh", "strict", "nope", "__consumer_offsets"])
                if name in seen:
                    continue
                seen.add(name)
                parts, numbers = [], set()
                for _ in range(random.choice([0, 1, 1, 2])):
                    number = random.choice([0, 0, 1, -1, 2**31 - 1])
                    if number in numbers:
                        continue
                    numbers.add(number)
                    records = random.choice([good, good, b"", good[:30]])
                    parts.append({"Index": number, "Records": records})
                topic = {"Name": name, "PartitionData": parts}
                if version >= 13:
                    topic = {"TopicId": UNKNOWN_ID, "PartitionData": parts}
                    if name in ("oddments", "fresh", "strict"):
                        topic["TopicId"] = self.stories.topic_id(name)
                topics.append(topic)
            asked = {
                "TransactionalId": random.choice([None, None, None, "t"]),
                "Acks": random.choice([1, 1, -1, 2, -2, 32767]),
                "TimeoutMs": random.choice([1000, 1000, 0, -1]),
                "TopicData": topics,
            }
            what = f"{asked}".replace(repr(good), "GOOD")
            pair.ask(what, 0, version, fitting(0, version, asked))

    def long_texts(self, pair):
        """Strings as long as any may be, and longer; numbers of partitions beyond all measure."""
        longest = "n" * 0x7FFF
        new = {"NumPartitions": 1, "ReplicationFactor": 1, "Assignments": []}
        for version in range(2, 8):
            bad = {"Name": "new", **new, "Configs": [{"Name": longest, "Value": "1"}]}
            good = {"Name": "newer", **new, "Configs": []}
            asked = {"Topics": [bad, good], "timeoutMs": 5000, "validateOnly": True}
            pair.ask("a config's name of 32 KiB", 19, version, fitting(19, version, asked))
            value = [{"Name": "retention.ms", "Value": longest}]
            asked["Topics"] = [{"Name": "new", **new, "Configs": value}]
            pair.ask("a config's value of 32 KiB", 19, version, fitting(19, version, asked))
            for count in (10_001, 10**6, 10**9, 2**31 - 1):
                asked["Topics"] = [{"Name": "new", **new, "NumPartitions": count, "Configs": []}]
                what = f"B-44, {count} partitions"
                pair.ask(what, 19, version, fitting(19, version, asked))
        resources = [
            {"ResourceType": 4, "ResourceName": longest, "ConfigurationKeys": None},
            {"ResourceType": 2, "ResourceName": "nope", "ConfigurationKeys": None},
        ]
        for version in range(1, 5):
            asked = {"Resources": resources}
            pair.ask("a broker's name of 32 KiB", 32, version, fitting(32, version, asked))
        for version in (9, 12, 13):
            for name in (longest, longest + "n"):
                asked = {"Topics": [{"Name": name}], "AllowAutoTopicCreation": False}
                what = f"a name of {len(name)} bytes"
                pair.ask(what, 3, version, fitting(3, version, asked))
        for name in (longest, longest + "n"):
            asked = {"Topics": [{"Name": name}], "ResponsePartitionLimit": 10, "Cursor": None}
            pair.ask(f"a name of {len(name)} bytes", 75, 0, asked)
