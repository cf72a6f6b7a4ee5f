"""A member that uses aiokafka."""

import asyncio

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.errors import KafkaError

from member import Member


class Listener(ConsumerRebalanceListener):
    """Passes on what happens to the member."""

    def __init__(self, member):
        self.member = member

    async def on_partitions_assigned(self, assigned):
        self.member.assigned([it.partition for it in assigned])

    async def on_partitions_revoked(self, revoked):
        self.member.revoked([it.partition for it in revoked])


async def consume(member):
    consumer = AIOKafkaConsumer(
        bootstrap_servers=member.bootstrap,
        group_id=member.group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6000,
        heartbeat_interval_ms=500,
    )
    consumer.subscribe([member.topic], listener=Listener(member))
    await consumer.start()
    while not member.is_asked_to_stop:
        found = await consumer.getmany(timeout_ms=200, max_records=20)
        for records in found.values():
            for record in records:
                member.record(record.partition, record.offset, record.value)
        if found:
            try:
                await consumer.commit()
            except KafkaError as why:
                member.complain(f"commit: {why!r}")
    # It leaves the group without a word to its listener.
    member.revoked([it.partition for it in consumer.assignment()])
    await consumer.stop()


asyncio.run(consume(Member()))
