"""A member that uses confluent-kafka (the newest librdkafka)."""

import confluent_kafka as ck

from member import Member

STRATEGIES = {"eager": "range,roundrobin", "cooperative": "cooperative-sticky"}


def main():
    member = Member()
    consumer = ck.Consumer(
        {
            "bootstrap.servers": member.bootstrap,
            "group.id": member.group,
            "partition.assignment.strategy": STRATEGIES[member.strategy],
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
        }
    )
    numbers = lambda partitions: [it.partition for it in partitions]
    consumer.subscribe(
        [member.topic],
        on_assign=lambda _, partitions: member.assigned(numbers(partitions)),
        on_revoke=lambda _, partitions: member.revoked(numbers(partitions)),
        on_lost=lambda _, partitions: member.revoked(numbers(partitions)),
    )
    while not member.is_asked_to_stop:
        message = consumer.poll(0.2)
        if message is None or message.error():
            continue
        member.record(message.partition(), message.offset(), message.value())
        try:
            consumer.commit(message, asynchronous=False)
        except ck.KafkaException as why:
            member.complain(f"commit: {why}")
    consumer.close()


main()
