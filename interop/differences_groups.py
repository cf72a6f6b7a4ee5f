"""What interop/differences.py asks about consumer groups: good and bad, at all versions."""

import time
import uuid

import wire
from differences_common import UNKNOWN_ID

COMMIT, FETCH, FIND, JOIN, BEAT, LEAVE, SYNC = 8, 9, 10, 11, 12, 13, 14
DESCRIBE, LIST, DELETE, OFFSET_DELETE = 15, 16, 42, 47
SUBSCRIPTION = b"\0\1\0\0\0\1\0\4data\xff\xff\xff\xff\0\0\0\0"


def cases(topic_id, kept):
    """Names and functions; the first waits for the coordinators of the rest."""
    stories = GroupStories(topic_id, kept)
    return [
        ("FindCoordinator", stories.find_coordinator),
        ("JoinGroup", stories.join_group),
        ("JoinGroup, refused", stories.join_refused),
        ("JoinGroup, static members", stories.static_members),
        ("SyncGroup", stories.sync_group),
        ("Heartbeat", stories.heartbeat),
        ("LeaveGroup", stories.leave_group),
        ("OffsetCommit", stories.offset_commit),
        ("OffsetCommit, members", stories.offset_commit_members),
        ("OffsetFetch", stories.offset_fetch),
        ("OffsetDelete", stories.offset_delete),
        ("DescribeGroups", stories.describe_groups),
        ("ListGroups", stories.list_groups),
        ("DeleteGroups", stories.delete_groups),
        ("two members", stories.two_members),
        ("deleted topics", stories.deleted_topics),
        ("group texts", stories.texts),
    ]


def join(group, member="", **more):
    """JoinGroup's fields."""
    return {
        "GroupId": group,
        "SessionTimeoutMs": 30000,
        "RebalanceTimeoutMs": 30000,
        "MemberId": member,
        "ProtocolType": "consumer",
        "Protocols": [{"Name": "range", "Metadata": SUBSCRIPTION}],
        **more,
    }


def rows(topic, *offsets, topic_id=None, metadata=""):
    """One topic of an OffsetCommit."""
    partitions = [
        {
            "PartitionIndex": index,
            "CommittedOffset": offset,
            "CommittedLeaderEpoch": epoch,
            "CommittedMetadata": metadata,
        }
        for index, offset, epoch in offsets
    ]
    return {"Name": topic, "TopicId": topic_id or UNKNOWN_ID, "Partitions": partitions}


def wanted(topic, *partitions, topic_id=None):
    """One topic of an OffsetFetch."""
    return {
        "Name": topic,
        "TopicId": topic_id or UNKNOWN_ID,
        "PartitionIndexes": list(partitions),
    }


class GroupStories:
    """One function per API."""

    def __init__(self, topic_id, kept):
        self.topic_id = topic_id
        self.kept = kept

    def commit(self, pair, group, *topics, **member):
        """A commit that is not looked at by version."""
        values = {"GroupId": group, "Topics": list(topics), **member}
        pair.ask(f"commit for {group}", COMMIT, 9, wire.fitting(COMMIT, 9, values))

    def member(self, pair, group, version=9, **more):
        """A member of both; its id is kept under the group's name. It has an assignment."""
        self.joined(pair, group, version, **more)
        self.assign(pair, group)

    def joined(self, pair, group, version=9, **more):
        """Joins, in two steps where the version wants an id first."""
        what = f"join {group}"
        keep = {group: lambda answer: answer["MemberId"]}
        values = wire.fitting(JOIN, version, join(group, **more))
        answer = pair.ask(what, JOIN, version, values, keep=keep)[0]
        if answer["ErrorCode"] == 79:
            values = wire.fitting(JOIN, version, join(group, self.kept(group), **more))
            pair.ask(what, JOIN, version, values, keep=keep)

    def assign(self, pair, group, generation=1):
        """SyncGroup of a leader that is alone."""
        values = {
            "GroupId": group,
            "GenerationId": generation,
            "MemberId": self.kept(group),
            "ProtocolType": "consumer",
            "ProtocolName": "range",
            "Assignments": [{"MemberId": self.kept(group), "Assignment": b"\0\1\0\0\0\0"}],
        }
        pair.ask(f"sync {group}", SYNC, 5, values)

    def find_coordinator(self, pair):
        """Before the topic is there, and after."""
        pair.ask("the first ask", FIND, 6, {"KeyType": 0, "CoordinatorKeys": ["g"]})
        self.settle(pair)
        for version in range(7):
            for key_type in (0, 2, 3, -1):
                if key_type and (version == 0 or (key_type == 2 and version == 6)):
                    continue
                for keys in (["g"], [""], ["g", "g", "h"], []):
                    if version < 4 and len(keys) != 1:
                        continue
                    values = {"Key": (keys or [""])[0], "KeyType": key_type}
                    values["CoordinatorKeys"] = keys
                    what = f"type {key_type} keys {keys}"
                    pair.ask(what, FIND, version, wire.fitting(FIND, version, values))
        for version in range(1, 7):
            values = {"Key": "tx", "KeyType": 1, "CoordinatorKeys": ["tx"]}
            pair.ask("a transaction's", FIND, version, wire.fitting(FIND, version, values))
        pair.ask("a share group's", FIND, 6, {"KeyType": 2, "CoordinatorKeys": ["g"]})

    def settle(self, pair):
        """Waits until both coordinate every group."""
        for side in (pair.kafka, pair.ours):
            connection = wire.Connection("127.0.0.1", side.port)
            deadline = time.monotonic() + 30
            while True:
                keys = [f"settle-{number}" for number in range(20)]
                asked = {"Groups": [{"GroupId": key, "Topics": None} for key in keys]}
                answer = connection.ask(FETCH, 9, asked)
                if all(group["ErrorCode"] == 0 for group in answer["Groups"]):
                    break
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{side.name}: {answer}")
                connection.ask(FIND, 6, {"KeyType": 0, "CoordinatorKeys": ["g"]})
                time.sleep(0.1)
            connection.close()

    def join_group(self, pair):
        """A first member, which joins again."""
        for version in range(10):
            group = f"join-{version}"
            self.joined(pair, group, version)
            self.assign(pair, group)
            again = join(group, self.kept(group), Reason="why not")
            pair.ask("again", JOIN, version, wire.fitting(JOIN, version, again))
            other = join(group, self.kept(group))
            other["Protocols"] = [
                {"Name": "sticky", "Metadata": b""},
                {"Name": "range", "Metadata": b"\0"},
            ]
            pair.ask("other protocols", JOIN, version, wire.fitting(JOIN, version, other))

    def join_refused(self, pair):
        """Joins that no group takes."""
        self.member(pair, "taken")
        cases = [
            ("no group", join("")),
            ("unknown member", join("nobody", "nobody")),
            ("unknown member of a group", join("taken", "nobody")),
            ("no protocols", join("refused", Protocols=[])),
            ("no protocol type", join("refused", ProtocolType="")),
            ("another protocol type", join("taken", ProtocolType="connect")),
            ("another protocol", join("taken", Protocols=[{"Name": "x", "Metadata": b""}])),
            ("session 5999", join("refused", SessionTimeoutMs=5999)),
            ("session 1800001", join("refused", SessionTimeoutMs=1800001)),
            ("session -1", join("refused", SessionTimeoutMs=-1)),
            ("session 0", join("refused", SessionTimeoutMs=0)),
            ("fenced", join("refused", "someone", GroupInstanceId="i")),
        ]
        for what, values in cases:
            pair.versions(what, JOIN, values)
        pair.ask("what refused joins leave", DELETE, 3, {"GroupsNames": ["refused"]})
        for number, timeout in enumerate((0, -1, -2147483648, 2147483647)):
            group = f"timeout-{number}"
            self.joined(pair, group, 3, RebalanceTimeoutMs=timeout)
            self.joined(pair, f"s-{number}", 3, SessionTimeoutMs=(6000, 1800000)[number % 2])

    def static_members(self, pair):
        """An instance comes again, with and without its id."""
        for version in range(5, 10):
            group = f"static-{version}"
            self.joined(pair, group, version, GroupInstanceId="i")
            self.assign(pair, group)
            for side in (pair.kafka, pair.ours):
                side.kept["first"] = side.kept[group]
            again = wire.fitting(JOIN, version, join(group, GroupInstanceId="i"))
            keep = {group: lambda answer: answer["MemberId"]}
            pair.ask("the instance again", JOIN, version, again, keep=keep)
            for what, member in (("old", "first"), ("new", group)):
                values = {"GroupId": group, "MemberId": self.kept(member), "GroupInstanceId": "i"}
                values["GenerationId"] = 1
                pair.ask(f"heartbeat of the {what}", BEAT, 4, values)
                sync = wire.fitting(SYNC, 5, {**values, "ProtocolType": None})
                pair.ask(f"sync of the {what}", SYNC, 5, sync)
                values = wire.fitting(JOIN, version, join(group, self.kept(member)))
                values["GroupInstanceId"] = "i"
                if what == "old":
                    pair.ask(f"join of the {what}", JOIN, version, values)
                commit = {
                    "GroupId": group,
                    "GenerationIdOrMemberEpoch": 1,
                    "MemberId": self.kept(member),
                    "GroupInstanceId": "i",
                    "Topics": [rows("data", (0, 1, -1))],
                }
                pair.ask(f"commit of the {what}", COMMIT, 9, wire.fitting(COMMIT, 9, commit))
            members = [
                {"MemberId": self.kept("first"), "GroupInstanceId": "i"},
                {"MemberId": "", "GroupInstanceId": "absent"},
                {"MemberId": "", "GroupInstanceId": "i"},
            ]
            pair.ask("leave", LEAVE, 5, {"GroupId": group, "Members": members})

    def sync_group(self, pair):
        """Generations, members, protocols."""
        for version in range(6):
            group = f"sync-{version}"
            self.joined(pair, group)
            good = {
                "GroupId": group,
                "GenerationId": 1,
                "MemberId": self.kept(group),
                "ProtocolType": "consumer",
                "ProtocolName": "range",
                "Assignments": [
                    {"MemberId": self.kept(group), "Assignment": b"mine"},
                    {"MemberId": "nobody", "Assignment": b"nobody's"},
                ],
            }
            cases = [
                ("no group", {"GroupId": ""}),
                ("unknown group", {"GroupId": "absent"}),
                ("generation 0", {"GenerationId": 0}),
                ("generation 2", {"GenerationId": 2}),
                ("unknown member", {"MemberId": "nobody"}),
                ("no member", {"MemberId": ""}),
                ("another type", {"ProtocolType": "connect"}),
                ("another protocol", {"ProtocolName": "sticky"}),
                ("unknown instance", {"GroupInstanceId": "i"}),
                ("good", {}),
                ("once more", {"Assignments": []}),
                ("once more without protocol", {"ProtocolType": None, "ProtocolName": None}),
            ]
            for what, other in cases:
                if version < 5 and what in ("another type", "another protocol"):
                    continue
                values = wire.fitting(SYNC, version, {**good, **other})
                pair.ask(what, SYNC, version, values)

    def heartbeat(self, pair):
        """Generations and members."""
        self.member(pair, "beat")
        good = {"GroupId": "beat", "GenerationId": 1, "MemberId": self.kept("beat")}
        cases = [
            ("good", {}),
            ("no group", {"GroupId": ""}),
            ("unknown group", {"GroupId": "absent"}),
            ("generation 0", {"GenerationId": 0}),
            ("generation -1", {"GenerationId": -1}),
            ("unknown member", {"MemberId": "nobody"}),
            ("no member", {"MemberId": ""}),
            ("unknown instance", {"GroupInstanceId": "i"}),
        ]
        for what, other in cases:
            pair.versions(what, BEAT, {**good, **other})

    def leave_group(self, pair):
        """One member, many, none."""
        for version in range(6):
            group = f"leave-{version}"
            self.member(pair, group)
            member = {"MemberId": self.kept(group), "Reason": "had enough"}
            stranger = [{"MemberId": "x"}]
            cases = [
                ("no group", {"GroupId": "", "MemberId": "x", "Members": stranger}),
                ("unknown group", {"GroupId": "no", "MemberId": "x", "Members": stranger}),
                ("unknown member", {"MemberId": "x", "Members": stranger}),
                ("no member", {"MemberId": "", "Members": [{"MemberId": ""}]}),
                ("nobody", {"MemberId": "x", "Members": []}),
                ("two", {"MemberId": self.kept(group), "Members": [{"MemberId": "x"}, member]}),
                ("again", {"MemberId": self.kept(group), "Members": [member]}),
            ]
            for what, other in cases:
                values = wire.fitting(LEAVE, version, {"GroupId": group, **other})
                pair.ask(what, LEAVE, version, values)

    def offset_commit(self, pair):
        """By nobody's member, to what is there and what is not."""
        data = self.topic_id("data")
        cases = [
            ("good", [rows("data", (0, 5, 3), (1, 6, -1), topic_id=data)]),
            ("no topics", []),
            ("no partitions", [rows("data", topic_id=data)]),
            ("a missing partition", [rows("data", (0, 7, 1), (9, 1, 1), topic_id=data)]),
            ("only a missing one", [rows("data", (9, 1, 1), (-1, 1, 1), topic_id=data)]),
            ("a missing topic", [rows("absent", (0, 1, 1))]),
            ("a bad name", [rows("bad name!", (0, 1, 1))]),
            ("no id", [rows("absent", (0, 1, 1), topic_id=uuid.UUID(int=0))]),
            ("both", [rows("absent", (0, 1, 1)), rows("data", (1, 8, 1), topic_id=data)]),
            ("twice", [rows("data", (0, 9, 1), (0, 10, 1), topic_id=data)]),
            ("offset -1", [rows("data", (0, -1, -1), topic_id=data)]),
            ("offset -2", [rows("data", (0, -2, -1), topic_id=data)]),
            ("epoch -2", [rows("data", (0, 11, -2), topic_id=data)]),
            ("null text", [rows("data", (0, 12, 1), topic_id=data, metadata=None)]),
            ("a text", [rows("data", (0, 13, 1), topic_id=data, metadata="caf\u00e9")]),
            ("a long text", [rows("data", (0, 14, 1), topic_id=data, metadata="x" * 4097)]),
            ("4096 bytes", [rows("data", (0, 15, 1), topic_id=data, metadata="x" * 4096)]),
            ("wide text", [rows("data", (0, 16, 1), topic_id=data, metadata="\u00e9" * 3000)]),
        ]
        for version in range(2, 11):
            for what, topics in cases:
                for retention in (-1, 86400000) if what == "good" else (-1,):
                    values = {"GroupId": f"commit-{version}", "Topics": topics}
                    values["RetentionTimeMs"] = retention
                    values = wire.fitting(COMMIT, version, values)
                    pair.ask(what, COMMIT, version, values)
                self.fetch_all(pair, f"commit-{version}", f"after {what}")
        pair.versions("no group", COMMIT, {"GroupId": "", "Topics": cases[0][1]})
        self.fetch_all(pair, "", "of no group")

    def fetch_all(self, pair, group, what):
        """All offsets of a group."""
        groups = [{"GroupId": group, "Topics": None}]
        pair.ask(f"offsets {what}", FETCH, 9, {"Groups": groups})

    def offset_commit_members(self, pair):
        """Members, generations, and who is neither."""
        data = self.topic_id("data")
        self.member(pair, "m")
        topics = [rows("data", (0, 5, 3), topic_id=data)]
        good = {"GroupId": "m", "Topics": topics, "MemberId": self.kept("m")}
        good["GenerationIdOrMemberEpoch"] = 1
        cases = [
            ("good", {}),
            ("generation 0", {"GenerationIdOrMemberEpoch": 0}),
            ("generation 2", {"GenerationIdOrMemberEpoch": 2}),
            ("generation -1", {"GenerationIdOrMemberEpoch": -1}),
            ("unknown member", {"MemberId": "nobody"}),
            ("no member", {"MemberId": ""}),
            ("neither", {"MemberId": "", "GenerationIdOrMemberEpoch": -1}),
            ("unknown instance", {"GroupInstanceId": "i"}),
            ("member of no group", {"GroupId": "absent-1"}),
            ("generation of no group", {"GroupId": "absent-2", "MemberId": ""}),
        ]
        for what, other in cases:
            pair.versions(what, COMMIT, {**good, **other})
        pair.ask("leave m", LEAVE, 5, {"GroupId": "m", "Members": [{"MemberId": self.kept("m")}]})
        for what, other in cases[:7]:
            pair.versions(f"{what}, of an empty group", COMMIT, {**good, **other})
        self.joined(pair, "completing")
        good.update({"GroupId": "completing", "MemberId": self.kept("completing")})
        for what, other in cases[:7]:
            pair.versions(f"{what}, completing", COMMIT, {**good, **other})

    def offset_fetch(self, pair):
        """One group and many, some topics and all."""
        data = self.topic_id("data")
        for group in ("fetch-1", "fetch-2"):
            offsets = [(0, 5, 3), (1, 6, -1)]
            self.commit(pair, group, rows("data", *offsets, topic_id=data, metadata="note"))
        self.commit(pair, "fetch-2", rows("odd", (0, 1, 1), topic_id=self.topic_id("odd")))
        asked = [
            ("some", [wanted("data", 0, 1, 9, topic_id=data)]),
            ("all", None),
            ("none", []),
            ("no partitions", [wanted("data", topic_id=data)]),
            ("a missing topic", [wanted("absent", 0), wanted("data", 0, topic_id=data)]),
            ("a bad name", [wanted("bad name!", 0)]),
            ("no id", [wanted("", 0, topic_id=uuid.UUID(int=0))]),
            ("twice", [wanted("data", 0, 0, topic_id=data)]),
            ("two topics", [wanted("odd", 0, topic_id=self.topic_id("odd")), wanted("data", 1)]),
        ]
        for version in range(1, 11):
            for what, topics in asked:
                for stable in (False, True) if version >= 7 else (False,):
                    for groups in (["fetch-1"], ["fetch-2", "absent", "fetch-1"], ["absent"], [""]):
                        if version < 8 and len(groups) > 1 or version < 2 and topics is None:
                            continue
                        values = {"GroupId": groups[0], "Topics": topics, "RequireStable": stable}
                        values["Groups"] = [{"GroupId": name, "Topics": topics} for name in groups]
                        values = wire.fitting(FETCH, version, values)
                        pair.ask(f"{what} of {groups}", FETCH, version, values)
        for version in (9, 10):
            for member, epoch in (("nobody", 1), ("nobody", -1), (None, 1), ("", 0)):
                group = {"GroupId": "fetch-1", "Topics": None}
                group.update({"MemberId": member, "MemberEpoch": epoch})
                pair.ask(f"member {member} {epoch}", FETCH, version, {"Groups": [group]})
            pair.ask("no groups", FETCH, version, {"Groups": []})

    def offset_delete(self, pair):
        """Of live groups, empty ones and none."""
        data, odd = self.topic_id("data"), self.topic_id("odd")

        def topics(*names):
            indexes = [{"PartitionIndex": index} for index in (0, 9)]
            return [{"Name": name, "Partitions": indexes} for name in names]

        self.member(pair, "od-live")
        generation = {"GenerationIdOrMemberEpoch": 1}
        member = {"MemberId": self.kept("od-live"), **generation}
        offsets = [rows("data", (0, 5, 3), topic_id=data), rows("odd", (0, 5, 3), topic_id=odd)]
        self.commit(pair, "od-live", *offsets, **member)
        self.member(pair, "od-empty")
        self.commit(pair, "od-empty", *offsets, MemberId=self.kept("od-empty"), **generation)
        members = [{"MemberId": self.kept("od-empty")}]
        pair.ask("leave od-empty", LEAVE, 5, {"GroupId": "od-empty", "Members": members})
        for group in ("od-live", "od-empty", "absent", ""):
            for names in (["data"], ["data", "odd", "absent"], ["absent"], [], ["bad name!"]):
                values = {"GroupId": group, "Topics": topics(*names)}
                pair.ask(f"{names} of {group!r}", OFFSET_DELETE, 0, values)
            self.fetch_all(pair, group, f"left of {group!r}")
        self.commit(pair, "od-alone", *offsets)
        values = {"GroupId": "od-alone", "Topics": topics("data", "odd")}
        pair.ask("all offsets of od-alone", OFFSET_DELETE, 0, values)
        pair.ask("a group of offsets alone", DELETE, 3, {"GroupsNames": ["od-alone"]})

    def describe_groups(self, pair):
        """Every state that one member can bring about."""
        self.member(pair, "d-stable")
        self.joined(pair, "d-completing")
        self.member(pair, "d-empty")
        members = [{"MemberId": self.kept("d-empty")}]
        pair.ask("leave d-empty", LEAVE, 5, {"GroupId": "d-empty", "Members": members})
        self.commit(pair, "d-offsets", rows("data", (0, 5, 3), topic_id=self.topic_id("data")))
        self.joined(pair, "d-other", ProtocolType="connect")
        names = ["d-stable", "d-completing", "d-empty", "d-offsets", "d-other", "absent", ""]
        for version in range(7):
            for name in names:
                for operations in (False, True) if version >= 3 else (False,):
                    values = {"Groups": [name], "IncludeAuthorizedOperations": operations}
                    values = wire.fitting(DESCRIBE, version, values)
                    pair.ask(f"{name!r}", DESCRIBE, version, values)
            many = wire.fitting(DESCRIBE, version, {"Groups": names + ["absent"]})
            pair.ask("many", DESCRIBE, version, many)
            pair.ask("none", DESCRIBE, version, {"Groups": []})

    def list_groups(self, pair):
        """States and types, in any spelling."""
        states = ["Stable", "stable", "Empty", "Dead", "CompletingRebalance", "nonsense", ""]
        for version in range(6):
            for state in [None, *states] if version >= 4 else [None]:
                for kind in (None, "classic", "Classic", "consumer", "nonsense", ""):
                    if kind is not None and version < 5:
                        continue
                    values = {"StatesFilter": [] if state is None else [state]}
                    values["TypesFilter"] = [] if kind is None else [kind]
                    values = wire.fitting(LIST, version, values)
                    pair.ask(f"state {state!r} type {kind!r}", LIST, version, values)
        both = {"StatesFilter": ["Stable", "Empty"], "TypesFilter": ["classic", "consumer"]}
        pair.ask("many states and types", LIST, 5, both)

    def delete_groups(self, pair):
        """Live, empty, absent, named twice."""
        data = self.topic_id("data")
        for version in range(4):
            live, gone = f"del-live-{version}", f"del-{version}"
            self.member(pair, live)
            self.commit(pair, gone, rows("data", (0, 5, 3), topic_id=data))
            for names in ([live], ["absent"], [gone, "absent", gone], [gone], [], [""]):
                values = wire.fitting(DELETE, version, {"GroupsNames": names})
                what = "live" if names == [live] else str(names).replace(gone, "del")
                pair.ask(what, DELETE, version, values)
            self.fetch_all(pair, gone, "of a deleted group")

    def two_members(self, pair):
        """A rebalance: the second waits for the first, then both for the leader."""
        for version in (0, 1, 3, 5, 7, 9):
            group = f"two-{version}"
            self.member(pair, group, version)
            second = pair.beside()
            keep = {group: lambda answer: answer["MemberId"]}
            values = wire.fitting(JOIN, version, join(group))
            if version >= 4:
                second.ask("an id for the second", JOIN, version, values, keep=keep)
                values["MemberId"] = self.kept(group)
            else:
                second.ask("a connection", 18, 3, {})
            second.begin(JOIN, version, values)
            self.until(pair, group, "PreparingRebalance")
            beat = {"GroupId": group, "GenerationId": 1, "MemberId": self.kept(group)}
            pair.ask("heartbeat, preparing", BEAT, 4, beat)
            commit = {"GenerationIdOrMemberEpoch": 1, "MemberId": self.kept(group)}
            data = rows("data", (0, 5, 3), topic_id=self.topic_id("data"))
            self.commit(pair, group, data, **commit)
            again = wire.fitting(JOIN, version, join(group, self.kept(group)))
            pair.ask("join of the first", JOIN, version, again)
            second.finish("join of the second", JOIN, version, keep=keep)
            pair.ask("heartbeat, completing", BEAT, 4, {**beat, "GenerationId": 2})
            pair.ask("heartbeat, of before", BEAT, 4, beat)
            pair.ask("describe", DESCRIBE, 6, {"Groups": [group]}, ignore=("Members",))
            self.commit(pair, group, data, **commit)
            self.assign(pair, group, 2)
            sync = {"GroupId": group, "GenerationId": 2, "MemberId": self.kept(group)}
            second.ask("sync of the second", SYNC, 3, sync)
            members = [{"MemberId": self.kept(group)}]
            pair.ask("leave", LEAVE, 5, {"GroupId": group, "Members": members})
            second.ask("heartbeat of the second", BEAT, 4, {**sync})
            second.fresh()

    def until(self, pair, group, state):
        """Waits until both say that the group is in the state."""
        for side in (pair.kafka, pair.ours):
            deadline = time.monotonic() + 10
            connection = wire.Connection("127.0.0.1", side.port)
            while True:
                answer = connection.ask(DESCRIBE, 5, {"Groups": [group]})
                if answer["Groups"][0]["GroupState"] == state:
                    break
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{side.name}: {answer}")
                time.sleep(0.02)
            connection.close()

    def deleted_topics(self, pair):
        """The offsets of a topic go with it; a new topic of its name begins anew."""
        made = {"Name": "short", "NumPartitions": 1, "ReplicationFactor": 1, "Configs": []}
        for times in range(2):
            pair.ask("the topic", 19, 7, {"Topics": [made]})
            for side in (pair.kafka, pair.ours):
                side.learn_ids()
            pair.settle(["short"])
            self.fetch_all(pair, "keeper", f"before {times}")
            topic = rows("short", (0, 5, 3), topic_id=self.topic_id("short"))
            data = rows("data", (0, 5, 3), topic_id=self.topic_id("data"))
            self.commit(pair, "keeper", topic, data)
            self.fetch_all(pair, "keeper", "committed")
            pair.ask("deletion", 20, 6, {"Topics": [{"Name": "short"}], "TimeoutMs": 5000})
            pair.settle_gone("short")
            time.sleep(1)
            self.fetch_all(pair, "keeper", "left")

    def texts(self, pair):
        """Names of groups and members may be anything."""
        for group in ("caf\u00e9", "\U0001f600", "a" * 300, " ", "a/b:c", "\0"):
            self.member(pair, group, 3)
            self.commit(pair, group, rows("data", (0, 1, 1)))
            pair.ask("described", DESCRIBE, 5, {"Groups": [group]})
        for metadata in (b"", b"\0", b"\xff\xff", b"\0\3\0\0\0\1", b"\0\0\x7f\xff\xff\xff"):
            group = f"blob-{metadata.hex()}"
            self.member(pair, group, 3, Protocols=[{"Name": "range", "Metadata": metadata}])
            values = {"GroupId": group, "Topics": []}
            indexes = [{"PartitionIndex": 0}]
            values["Topics"] = [{"Name": "data", "Partitions": indexes}]
            pair.ask(f"offsets deleted beside {metadata!r}", OFFSET_DELETE, 0, values)
