"""A member that uses kafka-python."""

from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.errors import KafkaError

from member import Member


class Listener(ConsumerRebalanceListener):
    """Passes on what happens to the member."""

    def __init__(self, member):
        self.member = member

    def on_partitions_assigned(self, assigned):
        self.member.assigned([it.partition for it in assigned])

    def on_partitions_revoked(self, revoked):
        self.member.revoked([it.partition for it in revoked])


def main():
    member = Member()
    consumer = KafkaConsumer(
        bootstrap_servers=member.bootstrap,
        group_id=member.group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6000,
        heartbeat_interval_ms=500,
        max_poll_records=20,
    )
    consumer.subscribe([member.topic], listener=Listener(member))
    while not member.is_asked_to_stop:
        for records in consumer.poll(timeout_ms=200).values():
            for record in records:
                member.record(record.partition, record.offset, record.value)
        try:
            consumer.commit()
        except KafkaError as why:
            member.complain(f"commit: {why!r}")
    consumer.close()


main()
