"""C-10: confluent-kafka 2.6.0, whose librdkafka sends Fetch v12 unasked, reads with a group.

Prints a line a case and 'N passed, N failed' at the end.
"""

import argparse
import os
import sys
import tempfile

RECORDS = 10_000


def read_with_a_group(binary, folder):
    """Everything that was produced is read once by the two members of a group."""
    import confluent_kafka as ck
    from confluent_kafka.admin import AdminClient, NewTopic

    from librdkafka import Node

    data = os.path.join(folder, "data")
    os.mkdir(data)
    node = Node(binary, data)
    try:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        admin.create_topics([NewTopic("records", 4, 1)])["records"].result(20)
        producer = ck.Producer({"bootstrap.servers": node.bootstrap, "linger.ms": 20})
        for number in range(RECORDS):
            producer.produce("records", b"%d" % number)
            producer.poll(0)
        if producer.flush(30):
            raise RuntimeError("records were not delivered")
        settings = {"bootstrap.servers": node.bootstrap, "group.id": "old"}
        settings["auto.offset.reset"] = "earliest"
        members = [ck.Consumer(settings), ck.Consumer(settings)]
        for member in members:
            member.subscribe(["records"])
        found = []
        idle = 0
        while len(found) < RECORDS and idle < 300:
            messages = [it for member in members for it in member.consume(500, 0.1)]
            idle = 0 if messages else idle + 1
            for message in messages:
                if message.error():
                    raise RuntimeError(str(message.error()))
            found.extend(int(message.value()) for message in messages)
        for member in members:
            member.close()
        if set(found) != set(range(RECORDS)):
            raise RuntimeError(f"{len(set(found))} of {RECORDS} records were read")
    finally:
        node.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True, help="the highwater binary")
    parser.add_argument("--package", required=True, help="the folder with confluent-kafka 2.6.0")
    options = parser.parse_args()
    sys.path.insert(0, options.package)
    import confluent_kafka as ck

    name = f"C-10 a group of confluent-kafka {ck.__version__} reads {RECORDS} records"
    with tempfile.TemporaryDirectory() as folder:
        try:
            read_with_a_group(options.binary, folder)
        except Exception as why:  # noqa: BLE001 (whatever it is, the case failed)
            print(f"FAILED {name}\n        {why}\n0 passed, 1 failed")
            sys.exit(1)
    print(f"ok {name}\n1 passed, 0 failed")


if __name__ == "__main__":
    main()
