"""Kafka's messages in Python, by the schema notation in crates/protocol/schemas (see its README).

A second reading of the notation, on purpose: nothing of the Rust code is used here, so that what
both servers answer is judged by something else. Messages are dicts; absent fields get defaults.
"""

import pathlib
import socket
import struct
import uuid

SCHEMAS = pathlib.Path(__file__).resolve().parent.parent / "crates/protocol/schemas/api"
NEVER = (1 << 15, -1)


def versions(text):
    """`4+`, `0-12`, `3` as a pair."""
    if text in ("none", ""):
        return NEVER
    if text.endswith("+"):
        return int(text[:-1]), 1 << 14
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def within(version, span):
    """Whether the version is in the span."""
    return span[0] <= version <= span[1]


class Field:
    """One line of a schema."""

    def __init__(self, line):
        words = line.split()
        self.name, kind, span = words[:3]
        self.versions = versions(span)
        more = dict(word.partition("=")[::2] for word in words[3:])
        self.tag = int(more["tag"]) if "tag" in more else None
        self.nullable = kind.endswith("?")
        kind = kind.rstrip("?")
        self.null = versions(more["null"]) if "null" in more else self.versions
        self.is_array = kind.startswith("[]")
        self.kind = kind.removeprefix("[]")
        self.default = more.get("default")
        self.flexible = versions(more["flexible"]) if "flexible" in more else None
        self.fields = []

    def absent(self):
        """The value of a field that is not there."""
        if self.default is not None:
            return literal(self.default, self.kind)
        if self.is_array:
            return []
        if self.kind == "records":
            return None
        if self.fields:
            return {field.name: field.absent() for field in self.fields}
        simple = {"bool": False, "string": "", "bytes": b"", "uuid": uuid.UUID(int=0)}
        return simple.get(self.kind, 0)


def literal(text, kind):
    """A default as written."""
    if text == "null":
        return None
    if kind == "bool":
        return text == "true"
    if kind == "string":
        return text.strip('"')
    if kind == "float64":
        return float(text)
    return int(text, 0)


class Message:
    """A request or response."""

    def __init__(self, head, fields):
        words = head.split()
        self.name = words[1]
        more = dict(word.partition("=")[::2] for word in words[2:])
        self.key = int(more["key"])
        self.versions = versions(more["versions"])
        if "latest-unstable" in words:
            self.versions = (self.versions[0], self.versions[1] - 1)
        self.flexible = versions(more["flexible"])
        self.fields = fields


def load():
    """Requests and responses by API key."""
    requests, responses = {}, {}
    for path in sorted(SCHEMAS.glob("*.txt")):
        for block in path.read_text(encoding="ascii").split("\n\n"):
            lines = [line for line in block.splitlines() if line.strip()]
            lines = [line for line in lines if not line.lstrip().startswith("#")]
            if not lines:
                continue
            message = Message(lines[0], tree(lines[1:]))
            into = requests if lines[0].startswith("request ") else responses
            into[message.key] = message
    return requests, responses


def tree(lines):
    """The fields, each with those below it."""
    top, structs, path = [], {}, []
    for line in lines:
        depth = (len(line) - len(line.lstrip())) // 2
        words = line.split()
        path = path[: depth - 1]
        if words[0] == "struct":
            node = structs[words[1]] = []
            path.append(node)
            continue
        field = Field(line)
        (path[-1] if path else top).append(field)
        path.append(field.fields)
    share(top, structs)
    for fields in structs.values():
        share(fields, structs)
    return top


def share(fields, structs):
    """Gives fields of a shared struct its fields."""
    for field in fields:
        if field.kind in structs and not field.fields:
            field.fields = structs[field.kind]
        elif field.fields:
            share(field.fields, structs)


NUMBERS = {
    "int8": ">b",
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "uint32": ">I",
    "int64": ">q",
    "float64": ">d",
}


class Writer:
    """Encodes one message at one version."""

    def __init__(self, message, version):
        self.version = version
        self.is_flexible = within(version, message.flexible)
        self.out = bytearray()

    def varint(self, value):
        """Unsigned, seven bits a byte."""
        while value > 0x7F:
            self.out.append(value & 0x7F | 0x80)
            value >>= 7
        self.out.append(value)

    def length(self, value, is_flexible, form):
        """A length in front of something; -1 is null."""
        if is_flexible:
            self.varint(value + 1)
        else:
            self.out += struct.pack(form, value)

    def fields(self, fields, values):
        """All fields, the tagged ones last."""
        unknown = set(values) - {field.name for field in fields}
        assert not unknown, unknown
        tagged = []
        for field in fields:
            if not within(self.version, field.versions):
                continue
            value = values.get(field.name, field.absent())
            if field.tag is None:
                self.field(field, value)
            elif field.name in values and value != field.absent():
                tagged.append((field.tag, field, value))
        if not self.is_flexible:
            return
        self.varint(len(tagged))
        for tag, field, value in sorted(tagged, key=lambda each: each[0]):
            kept, self.out = self.out, bytearray()
            self.field(field, value)
            inner, self.out = self.out, kept
            self.varint(tag)
            self.varint(len(inner))
            self.out += inner

    def field(self, field, value):
        """One field."""
        if field.is_array:
            self.length(-1 if value is None else len(value), self.is_flexible, ">i")
            for each in value or []:
                self.one(field, each)
            return
        self.one(field, value)

    def one(self, field, value):
        """One value or one element."""
        flexible = self.is_flexible
        if field.flexible is not None:
            flexible = within(self.version, field.flexible)
        if field.fields:
            if field.nullable and not field.is_array:
                self.out += b"\xff" if value is None else b"\x01"
            if value is not None:
                self.fields(field.fields, value)
        elif field.kind in NUMBERS:
            self.out += struct.pack(NUMBERS[field.kind], value)
        elif field.kind == "bool":
            self.out.append(int(value))
        elif field.kind == "uuid":
            self.out += value.bytes
        else:
            form = ">h" if field.kind == "string" else ">i"
            data = value.encode() if isinstance(value, str) else value
            self.length(-1 if data is None else len(data), flexible, form)
            self.out += data or b""


class Reader:
    """Decodes one message at one version."""

    def __init__(self, message, version, data):
        self.version = version
        self.is_flexible = within(version, message.flexible)
        self.data = memoryview(data)
        self.at = 0

    def take(self, count):
        """The next bytes."""
        if count < 0 or self.at + count > len(self.data):
            raise ValueError(f"{count} bytes wanted at {self.at} of {len(self.data)}")
        self.at += count
        return bytes(self.data[self.at - count : self.at])

    def varint(self):
        """Unsigned, seven bits a byte."""
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def length(self, is_flexible, form):
        """A length; -1 is null."""
        if is_flexible:
            return self.varint() - 1
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def fields(self, fields):
        """All fields, the tagged ones last."""
        values = {}
        tagged = {}
        for field in fields:
            if not within(self.version, field.versions):
                continue
            if field.tag is None:
                values[field.name] = self.field(field)
            else:
                tagged[field.tag] = field
                values[field.name] = field.absent()
        if not self.is_flexible:
            return values
        for _ in range(self.varint()):
            tag, size = self.varint(), self.varint()
            end = self.at + size
            if tag in tagged:
                values[tagged[tag].name] = self.field(tagged[tag])
            else:
                values[f"unknown tag {tag}"] = self.take(size)
            assert self.at == end, f"tag {tag} has {size} bytes, read to {self.at} not {end}"
        return values

    def field(self, field):
        """One field."""
        if field.is_array:
            count = self.length(self.is_flexible, ">i")
            return None if count < 0 else [self.one(field) for _ in range(count)]
        return self.one(field)

    def one(self, field):
        """One value or one element."""
        flexible = self.is_flexible
        if field.flexible is not None:
            flexible = within(self.version, field.flexible)
        if field.fields:
            if field.nullable and not field.is_array and self.take(1) == b"\xff":
                return None
            return self.fields(field.fields)
        if field.kind in NUMBERS:
            form = NUMBERS[field.kind]
            return struct.unpack(form, self.take(struct.calcsize(form)))[0]
        if field.kind == "bool":
            return self.take(1) != b"\0"
        if field.kind == "uuid":
            return uuid.UUID(bytes=self.take(16))
        count = self.length(flexible, ">h" if field.kind == "string" else ">i")
        data = None if count < 0 else self.take(count)
        return data.decode() if field.kind == "string" and data is not None else data


REQUESTS, RESPONSES = load()


def fitting(key, version, values):
    """The request without fields that the version lacks."""

    def cut(fields, given):
        kept = {}
        for field in fields:
            if field.name not in given or not within(version, field.versions):
                continue
            value = given[field.name]
            if field.fields and isinstance(value, list):
                value = [cut(field.fields, each) for each in value]
            elif field.fields and isinstance(value, dict):
                value = cut(field.fields, value)
            kept[field.name] = value
        return kept

    return cut(REQUESTS[key].fields, values)


class Connection:
    """One connection, one request at a time."""

    def __init__(self, host, port, seconds=10):
        self.socket = socket.create_connection((host, port), timeout=seconds)
        self.correlation = 0

    def close(self):
        """Ends it."""
        self.socket.close()

    def send(self, key, version, body):
        """A request as bytes after the header."""
        self.correlation += 1
        head = struct.pack(">hhi", key, version, self.correlation) + struct.pack(">h", 5) + b"probe"
        if within(version, REQUESTS[key].flexible):
            head += b"\0"
        frame = head + body
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self):
        """The next frame, or nothing when the connection ends."""
        head = self.exactly(4)
        return head and self.exactly(struct.unpack(">i", head)[0])

    def exactly(self, count):
        """So many bytes, or nothing when the connection ends."""
        data = b""
        while len(data) < count:
            try:
                more = self.socket.recv(count - len(data))
            except ConnectionError:
                return None
            if not more:
                return None
            data += more
        return data

    def ask(self, key, version, values, tail=b""):
        """The decoded answer; 'closed' or 'silent' when there is none."""
        self.start(key, version, values, tail)
        return self.finish(key, version)

    def start(self, key, version, values, tail=b""):
        """Sends a request."""
        writer = Writer(REQUESTS[key], version)
        writer.fields(REQUESTS[key].fields, values)
        self.send(key, version, bytes(writer.out) + tail)

    def finish(self, key, version):
        """The next answer, as `ask` gives it."""
        try:
            frame = self.receive()
        except TimeoutError:
            return "silent"
        if frame is None:
            return "closed"
        if key == 0 and frame == b"":
            return "empty frame"
        return self.decode(key, version, frame)

    def decode(self, key, version, frame):
        """An answer without its length."""
        message = RESPONSES[key]
        start = 4
        if within(version, message.flexible) and key != 18:
            assert frame[4] == 0, "tags in a response header"
            start = 5
        reader = Reader(message, version, frame[start:])
        values = reader.fields(message.fields)
        if reader.at != len(reader.data):
            values["trailing bytes"] = len(reader.data) - reader.at
        return values
