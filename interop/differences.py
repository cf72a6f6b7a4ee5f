"""The same requests to Apache Kafka 4.4 and to highwater, and where the answers differ.

Both serve an empty directory of one cluster id with one configuration. Every request goes to both,
in the same order; answers are decoded by interop/wire.py and compared field by field, after ids,
ports and sessions got names. Prints each difference and, for each API, a line 'ok' or 'FAILED'.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import uuid

import differences_cases
import differences_common
import differences_groups
import wire
from directory import PROPERTIES, Server, free_ports


# What makes the ids of group members unique.
MEMBER_UUID = re.compile("-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class TopicId:
    """Stands for the id that the topic has on each of the two."""

    def __init__(self, name):
        self.name = name


class Kept:
    """Stands for a number that an earlier answer of each of the two gave."""

    def __init__(self, name):
        self.name = name


class Side:
    """One of the two servers."""

    def __init__(self, name, port, controller):
        self.name = name
        self.port = port
        self.controller = controller
        self.connection = None
        self.ids = {}
        self.kept = {}

    def ask(self, key, version, values, tail):
        """One request over the connection, which is made anew when it has ended."""
        if self.connection is None:
            self.connection = wire.Connection("127.0.0.1", self.port, 8)
        try:
            answer = self.connection.ask(key, version, self.resolve(values), tail)
        except (BrokenPipeError, ConnectionError):
            answer = "closed"
        except Exception as why:
            answer = f"unreadable: {why!r}"
        if isinstance(answer, str):
            self.connection.close()
            self.connection = None
        return answer

    def resolve(self, value):
        """Puts this side's ids and numbers in."""
        if isinstance(value, TopicId):
            return self.topic_id(value.name)
        if isinstance(value, Kept):
            return self.kept[value.name]
        if isinstance(value, dict):
            return {name: self.resolve(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.resolve(each) for each in value]
        return value

    def topic_id(self, name):
        """The topic's id on this side."""
        if name not in self.ids:
            self.learn_ids()
        return self.ids[name]

    def learn_ids(self):
        """Asks for all topics."""
        connection = wire.Connection("127.0.0.1", self.port)
        for topic in connection.ask(3, 12, {"Topics": None})["Topics"]:
            self.ids[topic["Name"]] = topic["TopicId"]
        connection.close()

    def named(self, value, field=""):
        """The answer with names for what two servers cannot have alike."""
        if isinstance(value, dict):
            return {name: self.named(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [self.named(each, field) for each in value]
        if isinstance(value, uuid.UUID) and value.int != 0:
            known = {topic_id: name for name, topic_id in self.ids.items()}
            return f"id of {known[value]}" if value in known else "an id"
        if field == "ProducerId" and value == 0:
            return "a ProducerId"
        if field == "Port" and value == self.port:
            return "the port"
        if field in ("SessionId", "ProducerId") and isinstance(value, int) and value > 0:
            return f"a {field}"
        if field == "LogAppendTimeMs" and value > 0:
            return "now"
        if field in ("ErrorMessage", "BatchIndexErrorMessage", "Documentation") and value:
            return "own words"
        if field == "Records" and value:
            return without_producers(value)
        if isinstance(value, str):
            return MEMBER_UUID.sub("-UUID", value.replace(str(self.port), "PORT"))
        return value


class Pair:
    """The two, asked alike."""

    def __init__(self, kafka, ours):
        self.kafka = kafka
        self.ours = ours
        self.asked = 0
        self.differences = {}
        self.known = set()

    def ask(self, what, key, version, values, tail=b"", keep=None, ignore=(), merge=False):
        """Asks both. `keep` maps a name to a function of the answer; `ignore` names fields. With
        `merge`, rows of one topic count as one: nothing says how they are to be grouped."""
        asked = [side.ask(key, version, values, tail) for side in (self.kafka, self.ours)]
        return self.compare(what, key, version, asked, keep, ignore, merge)

    def begin(self, key, version, values):
        """Asks both, and waits for nothing; the connections must be there."""
        for side in (self.kafka, self.ours):
            side.connection.start(key, version, side.resolve(values))

    def finish(self, what, key, version, keep=None, ignore=()):
        """The answers to what was begun."""
        asked = [side.connection.finish(key, version) for side in (self.kafka, self.ours)]
        return self.compare(what, key, version, asked, keep, ignore)

    def compare(self, what, key, version, asked, keep, ignore, merge=False):
        """Notes how the answers differ, and gives them."""
        self.asked += 1
        answers = []
        for side, answer in zip((self.kafka, self.ours), asked):
            if not isinstance(answer, str):
                side_learns(side, answer)
                for name, function in (keep or {}).items():
                    side.kept[name] = function(answer)
            answers.append(merged(side.named(answer)) if merge else side.named(answer))
        if what in differences_common.KNOWN:
            self.known.add(what)
            return answers
        found = list(different("", answers[0], answers[1], ignore))
        for path, theirs, ours in found:
            name = wire.REQUESTS[key].name.removesuffix("Request")
            told = f"{path}\n    kafka     {theirs!r}\n    highwater {ours!r}"
            at = self.differences.setdefault(f"{name}, {what}: {told}", [])
            at.append(version)
        return answers

    def versions(self, what, key, values, first=0, last=99, **more):
        """Asks at each version that can say it."""
        low, high = wire.REQUESTS[key].versions
        for version in range(max(low, first), min(high, last) + 1):
            self.ask(what, key, version, wire.fitting(key, version, values), **more)

    def at_controllers(self):
        """The same two, asked on their controller listeners; what differs is told here."""
        sides = [
            Side(side.name, side.controller, side.controller) for side in (self.kafka, self.ours)
        ]
        pair = Pair(*sides)
        pair.differences, pair.known = self.differences, self.known
        return pair

    def beside(self):
        """The same two over connections of their own, with own kept values."""
        sides = [Side(side.name, side.port, side.controller) for side in (self.kafka, self.ours)]
        for side, of in zip(sides, (self.kafka, self.ours)):
            side.ids = of.ids
        pair = Pair(*sides)
        pair.differences, pair.known = self.differences, self.known
        return pair

    def settle(self, topics):
        """Waits until both serve the topics: Kafka answers before its partitions lead."""
        for side in (self.kafka, self.ours):
            deadline = time.monotonic() + 20
            connection = wire.Connection("127.0.0.1", side.port)
            for name in topics:
                part = {"PartitionIndex": 0, "Timestamp": -1}
                asked = {"ReplicaId": -1, "Topics": [{"Name": name, "Partitions": [part]}]}
                while True:
                    answer = connection.ask(2, 7, asked)
                    if answer["Topics"][0]["Partitions"][0]["ErrorCode"] == 0:
                        break
                    if time.monotonic() > deadline:
                        raise RuntimeError(f"{side.name}: {answer}")
                    time.sleep(0.05)
            while connection.ask(22, 4, {"TransactionalId": None})["ErrorCode"] != 0:
                time.sleep(0.05)
            connection.close()

    def settle_gone(self, topic):
        """Waits until both have forgotten the topic."""
        asked = {"Topics": [{"Name": topic}], "AllowAutoTopicCreation": False}
        for side in (self.kafka, self.ours):
            connection = wire.Connection("127.0.0.1", side.port)
            deadline = time.monotonic() + 20
            while connection.ask(3, 12, asked)["Topics"][0]["ErrorCode"] == 0:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{side.name} still has {topic}")
                time.sleep(0.05)
            connection.close()

    def fresh(self):
        """New connections."""
        for side in (self.kafka, self.ours):
            if side.connection is not None:
                side.connection.close()
                side.connection = None


def without_producers(records):
    """Batches without CRC, producer id and max timestamp: those differ by producer and clock."""
    out = bytearray(records)
    at = 0
    while at + 61 <= len(out):
        size = 12 + int.from_bytes(out[at + 8 : at + 12], "big")
        out[at + 17 : at + 21] = bytes(4)
        out[at + 35 : at + 43] = bytes(8)
        out[at + 43 : at + 51] = bytes(8)
        at += size
    return bytes(out)


def merged(answer):
    """An answer of Fetch whose rows of one topic are one."""
    if isinstance(answer, str):
        return answer
    rows = {}
    for row in answer["Responses"]:
        rows.setdefault(row.get("Topic") or row.get("TopicId"), []).extend(row["Partitions"])
    rows = [{"Topic": topic, "Partitions": parts} for topic, parts in rows.items()]
    return {**answer, "Responses": rows}


def side_learns(side, answer):
    """Topic ids that the answer tells."""
    for topic in answer.get("Topics") or []:
        if isinstance(topic, dict) and topic.get("Name") and topic.get("TopicId"):
            if topic["TopicId"].int != 0 and topic["ErrorCode"] == 0:
                side.ids[topic["Name"]] = topic["TopicId"]


def spans(versions):
    """`3-6 9` for people."""
    out = []
    for version in sorted(set(versions)):
        if out and version == out[-1][1] + 1:
            out[-1][1] = version
        else:
            out.append([version, version])
    return " ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in out)


SORT_BY = {
    "Topics": ("Name", "TopicId"),
    "Configs": ("Name",),
    "Responses": ("Name", "Topic", "TopicId"),
    "Partitions": ("PartitionIndex",),
    "PartitionResponses": ("Index",),
    "Groups": ("GroupId",),
    "Results": ("GroupId",),
}


def sort_field(last, elements):
    """The field that a list is compared by: its order means nothing."""
    for field in SORT_BY.get(last, ()):
        if all(isinstance(each, dict) and field in each for each in elements):
            return field
    return None


def different(path, theirs, ours, ignore):
    """Where two answers part."""
    last = path.rsplit(".", 1)[-1].split("[")[0]
    if last in ignore or path in ignore:
        return
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in sorted(set(theirs) | set(ours)):
            here = f"{path}.{name}" if path else name
            yield from different(here, theirs.get(name), ours.get(name), ignore)
    elif isinstance(theirs, list) and isinstance(ours, list):
        by = sort_field(last, theirs + ours)
        if by:
            theirs = sorted(theirs, key=lambda each: str(each[by]))
            ours = sorted(ours, key=lambda each: str(each[by]))
            names = [[each[by] for each in side] for side in (theirs, ours)]
            if names[0] != names[1]:
                yield path, names[0], names[1]
                return
        if len(theirs) != len(ours):
            yield path, theirs, ours
            return
        for at, (one, other) in enumerate(zip(theirs, ours)):
            name = one.get(by, at) if by else at
            yield from different(f"{path}[{name}]", one, other, ignore)
    elif theirs is None and last == "ErrorMessage":
        return  # highwater says why where Kafka does not
    elif theirs != ours:
        yield path, theirs, ours


def start_both(folder, binary, libs):
    """Both servers on new directories."""
    java = ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", os.path.join(libs, "*")]
    servers = []
    sides = []
    for name in ("kafka", "highwater"):
        port, controller = free_ports(2)
        config = os.path.join(folder, f"{name}.properties")
        with open(config, "w", encoding="ascii") as out:
            data = os.path.join(folder, name)
            out.write(PROPERTIES.format(port=port, controller=controller, data=data))
            out.write(differences_common.PROPERTIES)
        log = os.path.join(folder, f"{name}.log")
        if name == "kafka":
            form = [*java, "kafka.tools.StorageTool", "format", "--standalone"]
            start = [*java, "kafka.Kafka", config]
            line = "Kafka Server started"
        else:
            form = [binary, "format", "--standalone"]
            start = [binary, "start", "--config", config]
            line = "highwater ready "
        subprocess.run(
            [*form, "-t", differences_common.CLUSTER, "-c", config], check=True, capture_output=True
        )
        servers.append(Server(start, log, lambda text, line=line: line in text, 90))
        sides.append(Side(name, port, controller))
    return servers, Pair(*sides)


def main():
    """Runs the cases, all or those whose name is given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--kafka-libs", required=True)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="highwater-interop-") as folder:
        servers, pair = start_both(folder, options.binary, options.kafka_libs)
        try:
            for name, case in [
                *differences_cases.cases(TopicId, Kept),
                *differences_groups.cases(TopicId, Kept),
            ]:
                always = ("topics", "FindCoordinator")
                if options.names and name not in (*options.names, *always):
                    continue
                pair.asked, pair.differences = 0, {}
                pair.fresh()
                try:
                    case(pair)
                except Exception as why:
                    pair.differences[f"the case broke off: {why!r}"] = []
                if pair.differences:
                    failed += 1
                    told = "\n  ".join(
                        f"{difference}\n    versions  {spans(versions)}"
                        for difference, versions in pair.differences.items()
                    )
                    print(
                        f"FAILED  differences, {name}: {len(pair.differences)} in "
                        f"{pair.asked} requests\n  {told}",
                        flush=True,
                    )
                else:
                    passed += 1
                    print(f"ok      differences, {name}: none in {pair.asked} requests", flush=True)
            for server in servers:
                if server.process.poll() is not None:
                    failed += 1
                    print(f"FAILED  differences, {server.name} has ended", flush=True)
        finally:
            for server in servers:
                server.kill()
        for what in sorted(pair.known):
            print(f"known   {what}: {differences_common.KNOWN[what]}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
