// A member that uses KafkaJS.
"use strict";

const { Kafka, logLevel } = require("kafkajs");

const [bootstrap, groupId, topic] = process.argv.slice(2);

function tell(event) {
  process.stdout.write(JSON.stringify({ at: Date.now() / 1000, ...event }) + "\n");
}

async function main() {
  const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.ERROR, retry: { retries: 30, maxRetryTime: 1000 } });
  const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, heartbeatInterval: 500, rebalanceTimeout: 10000 });
  let held = [];
  const giveBack = () => {
    if (held.length > 0) tell({ event: "revoked", partitions: held });
    held = [];
  };
  consumer.on(consumer.events.REBALANCING, giveBack);
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    giveBack();
    held = payload.memberAssignment[topic] || [];
    tell({ event: "assigned", partitions: held });
  });
  process.on("SIGTERM", async () => {
    giveBack();
    await consumer.disconnect();
    process.exit(0);
  });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      tell({ event: "record", partition, offset: Number(message.offset), value: message.value.toString() });
      const next = (BigInt(message.offset) + 1n).toString();
      await consumer.commitOffsets([{ topic, partition, offset: next }]);
    },
  });
}

main().catch((why) => {
  console.error(why);
  process.exit(1);
});
