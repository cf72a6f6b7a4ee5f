//! The driver of a node's machines: steps them and performs their effects in order.

use highwater_disk::MemDisk;
use highwater_node::{Effect, Input, MachineId};
use highwater_protocol::ListenerKind;
use highwater_types::NodeId;

use super::{Event, World};

impl World {
    /// Steps one machine and performs what it wants done. Performing never steps.
    pub(super) fn step(&mut self, node: NodeId, machine: MachineId, input: Input<MemDisk>) {
        let now = self.now_of(node);
        self.checker.touched(node, machine);
        let mut effects = Vec::new();
        let Some(process) = self.process_mut(node) else {
            return;
        };
        process.step(machine, now, input, &mut effects);
        self.perform_all(node, machine, effects);
    }

    /// Performs what a step wants done.
    pub(super) fn perform_all(
        &mut self,
        node: NodeId,
        machine: MachineId,
        effects: Vec<Effect<MemDisk>>,
    ) {
        for effect in effects {
            self.perform(node, machine, effect);
        }
        self.schedule_tick(node, machine);
    }

    /// Lets a machine be ticked at its deadline.
    pub(super) fn schedule_tick(&mut self, node: NodeId, machine: MachineId) {
        let now = self.now();
        let life = self.node(node).life;
        let Some(process) = self.process_mut(node) else {
            return;
        };
        let Some(deadline) = process.next_deadline(machine) else {
            return;
        };
        let at = deadline.max(now);
        let scheduled = process.ticks.get(&machine).copied();
        if scheduled.is_none_or(|scheduled| at < scheduled) {
            process.ticks.insert(machine, at);
            self.events.push(
                at,
                Event::Tick {
                    node,
                    life,
                    machine,
                },
            );
        }
    }

    fn perform(&mut self, node: NodeId, machine: MachineId, effect: Effect<MemDisk>) {
        let life = self.node(node).life;
        match effect {
            Effect::Admitted(ticket) => self.admitted(node, ticket),
            Effect::Answer { ticket, answer } => self.answered(node, ticket, answer),
            Effect::Part { to, part } => {
                let input = Input::Part {
                    from: machine,
                    part,
                };
                let mut at = self.after(self.delays.part);
                if let Some(process) = self.process_mut(node) {
                    let last = process.last_part.entry((machine, to)).or_default();
                    at = at.max(*last);
                    *last = at;
                }
                self.events.push(
                    at,
                    Event::Machine {
                        node,
                        life,
                        machine: to,
                        input,
                    },
                );
            }
            Effect::Send {
                peer,
                channel,
                token,
                request,
                deadline,
            } => {
                let sender = (machine, token);
                if peer.is_loopback(node) {
                    self.send_to_itself(node, sender, channel, &request, deadline);
                } else {
                    self.send_to_peer(node, sender, (peer, channel), request, deadline);
                }
            }
            Effect::Job { token, job } => {
                let at = self.after(self.delays.job);
                self.events.push(
                    at,
                    Event::Job {
                        node,
                        life,
                        machine,
                        token,
                        job,
                    },
                );
            }
            Effect::Event(entry) => {
                self.checker.journal(node, &entry);
                self.tell(format!("{node}: {entry}"));
            }
            // Shards stop on their way; control is the last.
            Effect::Stopped => {
                if machine == MachineId::Control
                    && let Some(process) = self.process_mut(node)
                {
                    process.stopped = true;
                }
            }
            Effect::Serving(listener) => self.opens(node, listener),
        }
    }

    fn opens(&mut self, node: NodeId, listener: ListenerKind) {
        if let Some(process) = self.process_mut(node) {
            process.listens.insert(listener);
        }
        let is_broker = self.node(node).config.roles.broker;
        // A node is told to serve once: for its clients, if it has any.
        if listener == ListenerKind::Broker || !is_broker {
            self.tell(format!("{node}: serving"));
        }
    }
}
