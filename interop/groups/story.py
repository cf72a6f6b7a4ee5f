"""Three members of a group, one killed, one joining, the node killed in between: once per client.

All clients live through the same story at the same time, each with a topic and a group of its own:
three members share six partitions; one is killed; a fourth joins; the node is killed and started
again; the producer stops; all leave. What must hold for each: every acknowledged record is handled
at least once, a partition has one owner at a time, committed offsets never go back, and at the end
all is committed and the group is empty. Prints a line a client and 'N passed, N failed' at the end.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from librdkafka import Node  # noqa: E402  (the folder above)

HERE = pathlib.Path(__file__).resolve().parent
PARTITIONS = 6
RECORDS_PER_SECOND = 40
PATIENCE = 90


class Process:
    """A member as a process of its own."""

    def __init__(self, command, log, translate):
        self.command = command
        self.events = []
        self.ended_at = None
        self.translate = translate
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                self.events.extend(self.translate(json.loads(line)))

    def held(self):
        """The partitions that it owns now."""
        held = set()
        for event in list(self.events):
            if event["event"] == "assigned":
                held |= set(event["partitions"])
            elif event["event"] == "revoked":
                held -= set(event["partitions"])
        return held

    def kill(self):
        """Ends it without a word to the group."""
        self.ended_at = time.time()
        self.process.kill()
        self.process.wait()
        self.reader.join()

    def leave(self):
        """Lets it leave its group."""
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise RuntimeError(f"{self.command[0]} did not end at SIGTERM") from None
        finally:
            self.reader.join()
            self.ended_at = time.time()


def plain(event):
    """What members of our own tell needs no translation."""
    return [event]


def verifiable(event):
    """What Apache's VerifiableConsumer tells, in our words."""
    at, name = event["timestamp"] / 1000, event["name"]
    if name == "record_data":
        value = str(event["value"])
        told = {"partition": event["partition"], "offset": event["offset"], "value": value}
        return [{"at": at, "event": "record", **told}]
    if name in ("partitions_assigned", "partitions_revoked"):
        partitions = [it["partition"] for it in event["partitions"]]
        return [{"at": at, "event": name.removeprefix("partitions_"), "partitions": partitions}]
    return []


class Client:
    """One kind of client, with its group, its members, and what it was sent."""

    def __init__(self, name, command, translate=plain):
        self.name = name
        self.topic = self.group = "".join(it if it.isalnum() else "-" for it in name)
        self.command = command
        self.translate = translate
        self.members = []
        self.acknowledged = set()
        self.went_back = []
        self.committed = {}
        self.failure = None

    def join(self, bootstrap, log):
        """One member more."""
        command = [it.format(bootstrap=bootstrap, topic=self.topic) for it in self.command]
        self.members.append(Process(command, log, self.translate))

    def is_shared_by(self, count):
        """Whether so many members have all partitions, each at least one and none twice."""
        held = [it.held() for it in self.members if it.ended_at is None]
        total = sum(len(it) for it in held)
        everything = set().union(*held) == set(range(PARTITIONS))
        return len(held) == count and all(held) and total == PARTITIONS and everything

    def handled(self):
        """The numbers that were handled by anybody."""
        events = (event for member in self.members for event in list(member.events))
        return {int(event["value"]) for event in events if event["event"] == "record"}

    def note_committed(self, offsets):
        """Compares with what was committed before."""
        for partition, offset in offsets.items():
            before = self.committed.get(partition, -1)
            if 0 <= offset < before:
                self.went_back.append((partition, before, offset))
            self.committed[partition] = max(offset, before)

    def judge_owners(self):
        """No partition has two owners at a time."""
        spans = collections.defaultdict(list)
        for number, member in enumerate(self.members):
            since = {}
            for event in member.events:
                for partition in event.get("partitions", ()):
                    if event["event"] == "assigned":
                        since.setdefault(partition, event["at"])
                    elif partition in since:
                        spans[partition].append((since.pop(partition), event["at"], number))
            for partition, start in since.items():
                spans[partition].append((start, member.ended_at, number))
        for partition, owned in spans.items():
            owned.sort()
            for (_, end, first), (start, _, second) in zip(owned, owned[1:]):
                if start < end and first != second:
                    over = round(end - start, 3)
                    raise RuntimeError(
                        f"partition {partition} has owners {first} and {second} for {over} s"
                    )


class Story:
    """All clients, one node."""

    def __init__(self, binary, folder, clients):
        self.binary, self.folder, self.clients = binary, folder, clients
        self.data = os.path.join(folder, "data")
        os.mkdir(self.data)
        self.log = open(os.path.join(folder, "members.log"), "ab")
        self.node = Node(binary, self.data, shards=2)
        self.bootstrap = self.node.bootstrap
        self.number = 0
        self.stopping = threading.Event()

    def living(self):
        """The clients that have not failed."""
        return [it for it in self.clients if it.failure is None]

    def each(self, what, act):
        """Does something for each client; who fails it is out."""
        for client in self.living():
            try:
                act(client)
            except Exception as why:  # noqa: BLE001 (whatever it is, it is this client's)
                client.failure = f"{what}: {why}"

    def wait(self, what, holds):
        """Waits until something holds for each client."""
        start = time.time()
        waiting = self.living()
        while waiting and time.time() - start < PATIENCE:
            waiting = [it for it in waiting if not holds(it)]
            time.sleep(0.1)
        for client in waiting:
            held = [sorted(it.held()) for it in client.members if it.ended_at is None]
            client.failure = f"not within {PATIENCE} s: {what}; members hold {held}"
        print(f"        {what}: {time.time() - start:.1f} s", flush=True)

    def produce(self):
        """Numbers to every topic, until told to stop."""
        settings = {"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 5}
        producer = ck.Producer({**settings, "reconnect.backoff.max.ms": 500})

        def delivered(client, number):
            def note(error, _message):
                if error is None:
                    client.acknowledged.add(number)

            return note

        while not self.stopping.is_set():
            for client in self.clients:
                value, partition = str(self.number), self.number % PARTITIONS
                producer.produce(
                    client.topic,
                    value,
                    partition=partition,
                    on_delivery=delivered(client, self.number),
                )
            self.number += 1
            producer.poll(0)
            self.stopping.wait(1 / RECORDS_PER_SECOND)
        left = producer.flush(60)
        if left:
            raise RuntimeError(f"{left} records were not delivered")

    def watch_offsets(self):
        """Looks at what is committed, again and again."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        while not self.stopping.wait(0.3):
            self.look_at_offsets(admin)

    def look_at_offsets(self, admin):
        """What each group has committed."""
        for client in self.living():
            partitions = [ck.TopicPartition(client.topic, it) for it in range(PARTITIONS)]
            request = ck.ConsumerGroupTopicPartitions(client.group, partitions)
            try:
                found = admin.list_consumer_group_offsets([request])[client.group].result(5)
            except Exception:  # noqa: BLE001 (the node may be down, or loading)
                continue
            offsets = {it.partition: it.offset for it in found.topic_partitions}
            client.note_committed(offsets)

    def tell(self):
        """The story."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        topics = [NewTopic(it.topic, PARTITIONS, 1) for it in self.clients]
        for made in admin.create_topics(topics).values():
            made.result(20)
        threads = [threading.Thread(target=it) for it in (self.produce, self.watch_offsets)]
        for thread in threads:
            thread.start()
        try:
            self.members_come_and_go()
        finally:
            self.stopping.set()
            for thread in threads:
                thread.join()
        self.wait("all records are handled", lambda it: it.acknowledged <= it.handled())
        self.each("leaving", lambda it: [member.leave() for member in it.members[:2]])
        self.each("leaving", lambda it: it.members[3].leave())
        self.each("owners", Client.judge_owners)
        self.look_at_offsets(admin)
        self.each("at the end", lambda it: self.judge_end(admin, it))

    def members_come_and_go(self):
        """Three join, one is killed, one joins, the node is killed and comes back."""
        for _ in range(3):
            self.each("join", lambda it: it.join(self.bootstrap, self.log))
        self.wait("three members share", lambda it: it.is_shared_by(3))
        self.wait("records are handled", lambda it: len(it.handled()) > 20)
        self.each("kill", lambda it: it.members[2].kill())
        self.wait("two members share", lambda it: it.is_shared_by(2))
        self.each("join", lambda it: it.join(self.bootstrap, self.log))
        self.wait("three members share again", lambda it: it.is_shared_by(3))
        self.node.kill()
        self.node = Node(self.binary, self.data, self.node.port, self.node.shards)
        restarted = self.number
        newest = lambda it: max(it.handled(), default=0)
        self.wait("records are handled again", lambda it: newest(it) > restarted + 20)
        self.wait("three members share still", lambda it: it.is_shared_by(3))

    def judge_end(self, admin, client):
        """Everything is committed, nothing ever went back, nobody is left."""
        if client.went_back:
            raise RuntimeError(f"committed offsets went back: {client.went_back[:3]}")
        described = admin.describe_consumer_groups([client.group])[client.group].result(10)
        if described.state.name != "EMPTY" or described.members:
            raise RuntimeError(f"the group is {described.state.name}")
        for partition in range(PARTITIONS):
            at = ck.TopicPartition(client.topic, partition)
            end = admin.list_offsets({at: ck.admin.OffsetSpec.latest()})[at].result(10).offset
            if client.committed.get(partition) != end:
                found = client.committed.get(partition)
                raise RuntimeError(f"partition {partition}: committed {found}, the end is {end}")

    def end(self):
        """Nothing outlives the story."""
        for client in self.clients:
            for member in client.members:
                if member.ended_at is None:
                    member.kill()
        self.node.stop()


def clients(options):
    """Every kind of client that there is a program for."""
    python = lambda name: [sys.executable, str(HERE / f"member_{name}.py")]
    told = ["{bootstrap}", "{topic}", "{topic}"]
    found = [
        Client("confluent-kafka eager", [*python("confluent"), *told, "eager"]),
        Client("confluent-kafka cooperative-sticky", [*python("confluent"), *told, "cooperative"]),
        Client("kafka-python", [*python("kafka_python"), *told, "eager"]),
        Client("aiokafka", [*python("aiokafka"), *told, "eager"]),
    ]
    if options.kafka_libs:
        java = ["java", "-Xmx128m", "-cp", f"{options.kafka_libs}/*"]
        java += ["org.apache.kafka.tools.VerifiableConsumer", "--verbose"]
        java += ["--bootstrap-server", "{bootstrap}", "--topic", "{topic}", "--group-id", "{topic}"]
        java += ["--session-timeout", "6000", "--reset-policy", "earliest"]
        found.append(Client("VerifiableConsumer", java, verifiable))
    if options.go:
        for name, strategy in [
            ("franz", "eager"),
            ("franz", "cooperative"),
            ("sarama", "eager"),
            ("sarama", "newest"),
        ]:
            program = str(pathlib.Path(options.go) / name)
            found.append(Client(f"{name} {strategy}", [program, *told, strategy]))
    if options.javascript:
        os.environ["NODE_PATH"] = options.javascript
        program = ["node", str(HERE / "member.js")]
        found.append(Client("KafkaJS", [*program, *told, "eager"]))
    return [it for it in found if options.only in it.name]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True, help="the highwater binary")
    parser.add_argument("--kafka-libs", help="the folder with Apache Kafka's jars")
    parser.add_argument("--go", help="the folder with the built members in Go")
    parser.add_argument("--javascript", help="the node_modules folder with KafkaJS")
    parser.add_argument("--only", default="", help="clients with this in their names")
    options = parser.parse_args()
    kinds = clients(options)
    with tempfile.TemporaryDirectory() as folder:
        story = Story(options.binary, folder, kinds)
        try:
            story.tell()
        finally:
            story.end()
            for name in ("members.log", "node.log"):
                text = (pathlib.Path(folder) / name).read_text(errors="replace")
                if any(it.failure for it in kinds):
                    print(f"{name}:\n{text[-6000:]}", file=sys.stderr)
    for client in kinds:
        outcome = "FAILED" if client.failure else "ok"
        print(f"{outcome} group of {client.name}")
        if client.failure:
            print(f"        {client.failure}")
    failed = sum(it.failure is not None for it in kinds)
    print(f"{len(kinds) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
