"""Clients of three brokers: what they live through while brokers are killed, paused and restarted.

Started by xtask, which owns the processes: `do kill 2` on standard output asks it for something,
and it answers `done` on standard input. Prints a line a case and 'N passed, N failed' at the end.
"""

import argparse
import collections
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import confluent_kafka as ck
import wire
from confluent_kafka.admin import AdminClient, NewTopic

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "groups"))
from story import PARTITIONS, Client, verifiable  # noqa: E402  (the folder below)

PATIENCE = 60
RECORDS = 3000
GROUPS = 20
NONE = 0
# COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR.
MOVING = (14, 15, 16)
# Those, and REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS before and after the append.
RETRIABLE = (*MOVING, 7, 19, 20)
OFFSETS_COMMIT_TIMEOUT = 5


class Brokers:
    """The brokers, as xtask runs them."""

    def __init__(self, options):
        self.libs = options.kafka_libs
        self.ports = {}
        for pair in options.brokers.split(","):
            number, port = pair.split("@")
            self.ports[int(number)] = int(port)
        self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in self.ports.values())
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap})

    def do(self, what, *brokers):
        """kill, stop, start, pause or resume, one after the other."""
        for broker in brokers:
            print(f"do {what} {broker}", flush=True)
            answer = sys.stdin.readline().strip()
            if answer != "done":
                raise RuntimeError(f"{what} {broker}: {answer}")

    def create(self, name, assignment, config=None):
        """A topic with these replicas."""
        topic = NewTopic(name, len(assignment), replica_assignment=assignment, config=config or {})
        self.admin.create_topics([topic])[name].result(30)
        self.wait_for_all()

    def wait_for_all(self):
        """Until every replica is in its ISR."""
        until("all in the ISR", self.is_healthy)

    def is_healthy(self):
        """Whether every broker says so."""
        for port in self.ports.values():
            admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
            try:
                topics = admin.list_topics(timeout=5).topics.values()
            except ck.KafkaException:
                return False
            for topic in topics:
                for partition in topic.partitions.values():
                    if partition.leader < 0 or len(partition.isrs) != len(partition.replicas):
                        return False
        return True

    def connect(self, broker):
        """A raw connection."""
        return wire.Connection("127.0.0.1", self.ports[broker], 30)

    def coordinator(self, group, of=None):
        """The id of the group's coordinator, as a broker says; none while it moves."""
        connection = self.connect(of or min(self.ports))
        try:
            answer = connection.ask(10, 2, {"Key": group, "KeyType": 0})
        finally:
            connection.close()
        return answer["NodeId"] if answer["ErrorCode"] == NONE else None

    def java(self, name, *arguments):
        """A tool of Apache Kafka as a process."""
        flags = ["-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        flags.append("-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
        command = ["java", *flags, "-cp", f"{self.libs}/*", f"org.apache.kafka.tools.{name}"]
        command += ["--bootstrap-server", self.bootstrap, *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def until(what, holds, seconds=PATIENCE):
    """Waits until it does; how long that took."""
    start = time.monotonic()
    while not holds():
        if time.monotonic() - start > seconds:
            raise RuntimeError(f"not within {seconds} s: {what}")
        time.sleep(0.05)
    return time.monotonic() - start


def followed(brokers, _folder):
    """Producers and consumers of both kinds while the leader is killed: each record once."""
    topics = ("from-java", "from-librdkafka")
    for topic in topics:
        brokers.create(topic, [[1, 2, 3]], {"min.insync.replicas": "2"})
    with tempfile.NamedTemporaryFile("w", suffix=".properties") as config:
        config.write("enable.idempotence=true\nretries=2147483647\nrequest.timeout.ms=2000\n")
        config.flush()
        arguments = ["--topic", "from-java", "--max-messages", str(RECORDS), "--throughput", "600"]
        producer = brokers.java("VerifiableProducer", *arguments, "--command-config", config.name)
        readers = []
        for topic in topics:
            arguments = ["--topic", topic, "--partition", "0", "--offset", "earliest"]
            arguments += ["--max-messages", str(RECORDS), "--timeout-ms", str(PATIENCE * 1000)]
            readers.append(brokers.java("consumer.ConsoleConsumer", *arguments))
        try:
            killed = write(brokers, "from-librdkafka")
            told = producer.communicate(timeout=PATIENCE)[0]
            found = [reader.communicate(timeout=2 * PATIENCE)[0].split() for reader in readers]
        finally:
            for process in (producer, *readers):
                process.kill()
    if not killed or f'"sent":{RECORDS},"acked":{RECORDS}' not in told:
        raise RuntimeError(f"VerifiableProducer: {told[-300:]}")
    expected = [str(number) for number in range(RECORDS)]
    for topic, numbers in zip(topics, found):
        if numbers != expected:
            raise RuntimeError(f"ConsoleConsumer of {topic}: {differ(expected, numbers)}")
        numbers = read(brokers, topic)
        if numbers != expected:
            raise RuntimeError(f"librdkafka reads {topic}: {differ(expected, numbers)}")
    brokers.do("start", 1)
    brokers.wait_for_all()


def write(brokers, topic):
    """Numbers with librdkafka; the leader is killed at a third of them."""
    acknowledged = []

    def delivered(error, message):
        acknowledged.append(str(error) if error else message.value().decode())

    settings = {"enable.idempotence": True, "linger.ms": 2, "socket.timeout.ms": 3000}
    settings["topic.metadata.refresh.interval.ms"] = 1000
    producer = ck.Producer({"bootstrap.servers": brokers.bootstrap, **settings})
    killed = False
    for number in range(RECORDS):
        producer.produce(topic, str(number), partition=0, on_delivery=delivered)
        producer.poll(1 / 600)
        if not killed and len(acknowledged) > RECORDS // 3:
            brokers.do("kill", 1)
            killed = True
    left = producer.flush(PATIENCE)
    if left or acknowledged != [str(number) for number in range(RECORDS)]:
        told = f"told {len(acknowledged)}: {acknowledged[:3]}"
        raise RuntimeError(f"{left} left of {RECORDS}; {told}")
    return killed


def read(brokers, topic):
    """All of partition 0 with librdkafka."""
    settings = {"group.id": "unused", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = ck.Consumer({"bootstrap.servers": brokers.bootstrap, **settings})
    consumer.assign([ck.TopicPartition(topic, 0, 0)])
    numbers = []
    while True:
        message = consumer.poll(PATIENCE)
        if message is None:
            raise RuntimeError(f"nothing for {PATIENCE} s after {len(numbers)} records")
        if message.error() is None:
            numbers.append(message.value().decode())
        elif message.error().code() == ck.KafkaError._PARTITION_EOF:
            break
    consumer.close()
    return numbers


def differ(expected, found):
    """What is wrong with a list of numbers."""
    counts = collections.Counter(found)
    lost = [it for it in expected if it not in counts]
    twice = [it for it, count in counts.items() if count > 1]
    return f"{len(found)} records, lost {lost[:3]}, twice {twice[:3]}"


class Writing:
    """Numbers to the topics of some groups, until it is left."""

    def __init__(self, brokers, clients):
        self.clients = clients
        self.stopping = threading.Event()
        settings = {"enable.idempotence": True, "linger.ms": 5, "socket.timeout.ms": 3000}
        self.producer = ck.Producer({"bootstrap.servers": brokers.bootstrap, **settings})
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.number = 0

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_why):
        self.stopping.set()
        self.thread.join()

    def run(self):
        """Forty records a second and topic."""

        def delivered(client, number):
            def note(error, _message):
                if error is None:
                    client.acknowledged.add(number)

            return note

        while not self.stopping.wait(1 / 40):
            for client in self.clients:
                note = delivered(client, self.number)
                partition = self.number % PARTITIONS
                value = str(self.number)
                self.producer.produce(client.topic, value, partition=partition, on_delivery=note)
            self.number += 1
            self.producer.poll(0)
        self.producer.flush(PATIENCE)


def members(brokers):
    """Groups of three, of librdkafka, of Java, and of Python."""
    python = lambda name: [sys.executable, str(HERE / f"groups/member_{name}.py")]
    told = ["{bootstrap}", "{topic}", "{topic}", "eager"]
    java = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    java += ["-cp", f"{brokers.libs}/*", "org.apache.kafka.tools.VerifiableConsumer", "--verbose"]
    java += ["--bootstrap-server", "{bootstrap}", "--topic", "{topic}", "--group-id", "{topic}"]
    java += ["--session-timeout", "8000", "--reset-policy", "earliest"]
    return [
        Client("three librdkafka", [*python("confluent"), *told]),
        Client("three kafka-python", [*python("kafka_python"), *told]),
        Client("three VerifiableConsumer", java, verifiable),
    ]


def coordinator_killed(brokers, folder):
    """Three members each live through the kill of their coordinator; nobody is put out."""
    groups = members(brokers)
    for group in groups:
        replicas = [[1 + (number + at) % 3 for at in range(3)] for number in range(PARTITIONS)]
        brokers.create(group.topic, replicas)
    log = open(os.path.join(folder, "members.log"), "ab")
    try:
        with Writing(brokers, groups) as writing:
            for group in groups:
                for _ in range(3):
                    group.join(brokers.bootstrap, log)
            until("three share", lambda: all(it.is_shared_by(3) for it in groups), 90)
            live_through(brokers, groups, writing)
        until("all is handled", lambda: all(it.acknowledged <= it.handled() for it in groups))
        for group in groups:
            for member in group.members:
                member.leave()
            group.judge_owners()
    finally:
        for group in groups:
            for member in group.members:
                if member.ended_at is None:
                    member.kill()


def live_through(brokers, groups, writing):
    """Kills the coordinator of the first group, and looks at all of them."""
    until("handled", lambda: all(len(it.handled()) > 40 for it in groups))
    found = {it.group: brokers.coordinator(it.group) for it in groups}
    coordinator = found[groups[0].group]
    before = [[len(member.events) for member in it.members] for it in groups]
    held = [[member.held() for member in it.members] for it in groups]
    brokers.do("kill", coordinator)
    others = [it for it in brokers.ports if it != coordinator]
    moved = until(
        "another coordinator",
        lambda: brokers.coordinator(groups[0].group, others[0]) in others,
    )
    at = writing.number
    newest = lambda it: max(it.handled(), default=0)
    took = until("handled again", lambda: all(newest(it) > at + 40 for it in groups))
    times = f"coordinator moved after {moved:.1f} s, all go on {took:.1f} s later"
    print(f"        {times}", flush=True)
    time.sleep(2)
    for group, was, had in zip(groups, before, held):
        for member, count, owned in zip(group.members, was, had):
            revoked = [it for it in member.events[count:] if it["event"] == "revoked"]
            if revoked or member.held() != owned:
                raise RuntimeError(f"{group.name}: a member was put out: {revoked[:2]}")
    brokers.do("start", coordinator)
    brokers.wait_for_all()


def joining(group, member):
    """A JoinGroup request."""
    return {
        "GroupId": group,
        "SessionTimeoutMs": 30000,
        "RebalanceTimeoutMs": 30000,
        "MemberId": member,
        "ProtocolType": "consumer",
        "Protocols": [{"Name": "range", "Metadata": bytes(10)}],
    }


class Raw:
    """A member of a group by hand, on one connection."""

    def __init__(self, brokers, group):
        self.group = group
        until("a coordinator", lambda: brokers.coordinator(group) is not None)
        self.connection = brokers.connect(brokers.coordinator(group))
        self.member, self.generation = "", -1
        until("joined", self.join)

    def join(self):
        """Joins alone, as the leader of the group."""
        answer = self.connection.ask(11, 5, joining(self.group, self.member))
        self.member = answer["MemberId"]
        if answer["ErrorCode"] != NONE:
            return False
        self.generation = answer["GenerationId"]
        given = [{"MemberId": self.member, "Assignment": b""}]
        answer = self.connection.ask(14, 3, {**self.me(), "Assignments": given})
        return answer["ErrorCode"] == NONE

    def me(self):
        """Who asks."""
        return {
            "GroupId": self.group,
            "GenerationId": self.generation,
            "MemberId": self.member,
        }

    def start_commit(self, offset):
        """Sends a commit."""
        partitions = [{"PartitionIndex": 0, "CommittedOffset": offset, "CommittedMetadata": ""}]
        me = self.me()
        asked = {
            "GroupId": self.group,
            "GenerationIdOrMemberEpoch": me["GenerationId"],
            "MemberId": self.member,
            "Topics": [{"Name": "from-java", "Partitions": partitions}],
        }
        self.connection.start(8, 7, asked)

    def finish_commit(self):
        """The error code of the answer."""
        answer = self.connection.finish(8, 7)
        return answer["Topics"][0]["Partitions"][0]["ErrorCode"]

    def start_heartbeat(self):
        """Sends a heartbeat."""
        self.connection.start(12, 3, self.me())

    def finish_heartbeat(self):
        """The error code of the answer."""
        return self.connection.finish(12, 3)["ErrorCode"]


def c_46(brokers, _folder):
    """Two of three replicas stand still: commit and heartbeat are answered in time."""
    member = Raw(brokers, "c-46")
    member.start_commit(1)
    if (code := member.finish_commit()) != NONE:
        raise RuntimeError(f"a commit in peace: error {code}")
    coordinator = brokers.coordinator("c-46")
    others = [it for it in brokers.ports if it != coordinator]
    brokers.do("pause", *others)
    try:
        codes = []
        for number in range(4):
            start = time.monotonic()
            member.start_commit(2 + number)
            member.start_heartbeat()
            code = member.finish_commit()
            took = time.monotonic() - start
            heartbeat = member.finish_heartbeat()
            after = time.monotonic() - start - took
            codes.append((code, heartbeat, round(took, 1), round(after, 1)))
            passing = (NONE, *RETRIABLE)
            # Apache Kafka's heartbeat waits behind the commit, and is refused as it is.
            if code not in passing or heartbeat not in passing:
                raise RuntimeError(f"commit, heartbeat and their seconds: {codes}")
            if max(took, after) > OFFSETS_COMMIT_TIMEOUT + 1:
                raise RuntimeError(f"too late: {codes}")
        print(f"        commit, heartbeat, seconds: {codes}", flush=True)
    finally:
        brokers.do("resume", *others)
    brokers.wait_for_all()
    member.start_commit(9)
    member.start_heartbeat()
    codes = (member.finish_commit(), member.finish_heartbeat())
    if codes != (NONE, NONE):
        raise RuntimeError(f"commit and heartbeat after it: {codes}, the member is lost")


def c_47_c_51(brokers, _folder):
    """Coordinators move and move back while groups join: each is served where it is said to be."""
    names = [f"moving-{number}" for number in range(GROUPS)]
    stopping = threading.Event()

    def join(name):
        """Asks to join again and again, wherever the coordinator is."""
        while not stopping.wait(0.1):
            try:
                broker = brokers.coordinator(name, of=3)
                if broker is not None:
                    joined(brokers, broker, name)
            except (OSError, TypeError):
                # Down, or closed in between.
                pass

    threads = [threading.Thread(target=join, args=(name,), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    try:
        for broker in (1, 2, 1):
            brokers.do("stop", broker)
            brokers.do("start", broker)
            time.sleep(0.5)
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
    for name in names:
        is_served = lambda: joined(brokers, brokers.coordinator(name), name) not in MOVING
        until(f"c_47: {name} is served", is_served, 5)
        Raw(brokers, name)
    brokers.wait_for_all()
    listed = list_groups(brokers, names)
    wrong = [name for name in names if listed[name] != [brokers.coordinator(name)]]
    if wrong:
        raise RuntimeError(f"c_51: {wrong[0]} is listed by {listed[wrong[0]]}")


def joined(brokers, broker, group):
    """The error code for somebody new: MEMBER_ID_REQUIRED by who serves the group."""
    if broker is None:
        return MOVING[1]
    connection = brokers.connect(broker)
    try:
        return connection.ask(11, 5, joining(group, ""))["ErrorCode"]
    finally:
        connection.close()


def list_groups(brokers, names):
    """The brokers that list each group."""
    listed = {name: [] for name in names}
    for broker in brokers.ports:
        connection = brokers.connect(broker)
        answer = connection.ask(16, 4, {"StatesFilter": []})
        connection.close()
        if answer["ErrorCode"] != NONE:
            raise RuntimeError(f"ListGroups at broker {broker}: error {answer['ErrorCode']}")
        for group in answer["Groups"]:
            if group["GroupId"] in listed:
                listed[group["GroupId"]].append(broker)
    return listed


CASES = [
    ("librdkafka and Java follow a killed leader: each record once", followed),
    ("three members each live through the kill of their coordinator", coordinator_killed),
    ("c_46 a commit and a heartbeat while two replicas stand still", c_46),
    ("c_47 c_51 coordinators move while groups join and are listed", c_47_c_51),
]


def main():
    """Runs all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", required=True, help="ID@PORT,..")
    parser.add_argument("--kafka-libs", required=True)
    parser.add_argument("--only", default="", help="cases with this in their names")
    options = parser.parse_args()
    brokers = Brokers(options)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES:
            if options.only not in name:
                continue
            start = time.monotonic()
            try:
                case(brokers, folder)
                results.append(True)
                print(f"ok      {name} ({time.monotonic() - start:.1f} s)", flush=True)
            except Exception as why:  # noqa: BLE001 (whatever it is, the case failed)
                results.append(False)
                print(f"FAILED  {name}: {why}", flush=True)
    print(f"{results.count(True)} passed, {results.count(False)} failed", flush=True)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
