// A member that uses Sarama.
package main

import (
	"context"
	"os"
	"time"

	"github.com/IBM/sarama"

	"highwater.example/interop/groups/tell"
)

type handler struct{ *tell.Member }

func (h handler) Setup(session sarama.ConsumerGroupSession) error {
	h.Assigned(session.Claims()[h.Topic])
	return nil
}

func (h handler) Cleanup(session sarama.ConsumerGroupSession) error {
	h.Revoked(session.Claims()[h.Topic])
	return nil
}

func (h handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			h.Record(message.Partition, message.Offset, message.Value)
			session.MarkMessage(message, "")
			// A commit takes turns with the fetch on the one connection, and that may wait for
			// half a second.
			if len(claim.Messages()) == 0 {
				session.Commit()
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func main() {
	member, ctx := tell.New()
	config := sarama.NewConfig()
	// Its default version is what most programs run with (C-11).
	if member.Strategy == "newest" {
		config.Version = sarama.MaxVersion
	}
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Session.Timeout = 6 * time.Second
	config.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	group, err := connect(ctx, member, config)
	if err != nil {
		member.Complain(err)
		os.Exit(1)
	}
	for ctx.Err() == nil {
		if err := group.Consume(ctx, []string{member.Topic}, handler{member}); err != nil {
			member.Complain(err)
			time.Sleep(200 * time.Millisecond)
		}
	}
	if err := group.Close(); err != nil {
		member.Complain(err)
	}
}

// The first connection is not tried again by the client itself.
func connect(ctx context.Context, member *tell.Member, config *sarama.Config) (sarama.ConsumerGroup, error) {
	for {
		group, err := sarama.NewConsumerGroup([]string{member.Bootstrap}, member.Group, config)
		if err == nil || ctx.Err() != nil {
			return group, err
		}
		member.Complain(err)
		time.Sleep(200 * time.Millisecond)
	}
}
