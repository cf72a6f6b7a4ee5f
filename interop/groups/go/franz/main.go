// A member that uses franz-go.
package main

import (
	"context"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"highwater.example/interop/groups/tell"
)

func main() {
	member, ctx := tell.New()
	balancer := kgo.CooperativeStickyBalancer()
	if member.Strategy == "eager" {
		balancer = kgo.RangeBalancer()
	}
	told := func(tell func([]int32)) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			tell(partitions[member.Topic])
		}
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(member.Bootstrap),
		kgo.ConsumerGroup(member.Group),
		kgo.ConsumeTopics(member.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(balancer),
		kgo.SessionTimeout(6*time.Second),
		kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(told(member.Assigned)),
		kgo.OnPartitionsRevoked(told(member.Revoked)),
		kgo.OnPartitionsLost(told(member.Revoked)),
	)
	if err != nil {
		member.Complain(err)
		os.Exit(1)
	}
	for ctx.Err() == nil {
		fetches := client.PollRecords(ctx, 20)
		fetches.EachRecord(func(it *kgo.Record) { member.Record(it.Partition, it.Offset, it.Value) })
		if err := client.CommitUncommittedOffsets(ctx); err != nil && ctx.Err() == nil {
			member.Complain(err)
		}
		client.AllowRebalance()
	}
	client.CloseAllowingRebalance()
}
