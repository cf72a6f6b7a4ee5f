//! The world around nodes: clocks, network, disks, clients, checkers, scenarios, seeds.
