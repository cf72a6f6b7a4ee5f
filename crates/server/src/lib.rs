//! Listeners, sendfile, job pools, timers: a node between real sockets and disks.
