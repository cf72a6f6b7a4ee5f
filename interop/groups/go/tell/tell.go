// Package tell is what members in Go do alike: arguments, events, the end.
package tell

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Member is the process of one member.
type Member struct {
	Bootstrap, Group, Topic, Strategy string
	lock                              sync.Mutex
}

// New reads the arguments. The context ends at SIGTERM.
func New() (*Member, context.Context) {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: BOOTSTRAP GROUP TOPIC STRATEGY")
		os.Exit(2)
	}
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	return &Member{Bootstrap: os.Args[1], Group: os.Args[2], Topic: os.Args[3], Strategy: os.Args[4]}, ctx
}

// Assigned tells which partitions it got.
func (m *Member) Assigned(partitions []int32) {
	m.tell(map[string]any{"event": "assigned", "partitions": notNull(partitions)})
}

// Revoked tells which partitions it has no more.
func (m *Member) Revoked(partitions []int32) {
	m.tell(map[string]any{"event": "revoked", "partitions": notNull(partitions)})
}

// Record tells of a record that was handled.
func (m *Member) Record(partition int32, offset int64, value []byte) {
	m.tell(map[string]any{"event": "record", "partition": partition, "offset": offset, "value": string(value)})
}

// Complain tells what went wrong and is survived.
func (m *Member) Complain(why error) {
	fmt.Fprintln(os.Stderr, time.Now().Format(time.StampMilli), why)
}

func notNull(partitions []int32) []int32 {
	if partitions == nil {
		return []int32{}
	}
	return partitions
}

func (m *Member) tell(event map[string]any) {
	m.lock.Lock()
	defer m.lock.Unlock()
	event["at"] = float64(time.Now().UnixMicro()) / 1e6
	line, err := json.Marshal(event)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}
