use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use highwater_disk::Blocking;

/// One piece of blocking work.
type Work = Box<dyn FnOnce(&Blocking) + Send>;

/// Threads for the blocking work of one log directory, started as they are needed and then kept.
#[derive(Clone, Debug)]
pub(crate) struct JobPool {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    /// Names the node in what its threads log.
    span: tracing::Span,
    threads_max: usize,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Work>,
    threads: usize,
    idle: usize,
    closed: bool,
}

impl JobPool {
    /// A pool of at most `threads_max` threads, called `name` in tools that list threads.
    pub(crate) fn new(name: impl Into<String>, threads_max: usize) -> Self {
        let shared = Shared {
            name: name.into(),
            span: tracing::Span::current(),
            threads_max: threads_max.max(1),
            state: Mutex::default(),
            wake: Condvar::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Hands over one piece of work. The queue needs no bound of its own: machines have a bounded
    /// number of jobs under way.
    ///
    /// # Errors
    /// When there is no thread at all and none can be started.
    pub(crate) fn run(&self, work: impl FnOnce(&Blocking) + Send + 'static) -> io::Result<()> {
        let mut state = self
            .shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        state.queue.push_back(Box::new(work));
        if state.queue.len() > state.idle && state.threads < self.shared.threads_max {
            let shared = Arc::clone(&self.shared);
            let started = thread::Builder::new()
                .name(self.shared.name.clone())
                .stack_size(STACK_BYTES)
                .spawn(move || shared.work());
            match started {
                Ok(_) => state.threads += 1,
                Err(why) if state.threads == 0 => return Err(why),
                // Those that run take it over.
                Err(_) => {}
            }
        }
        drop(state);
        self.shared.wake.notify_one();
        Ok(())
    }

    /// Lets the threads end once the queue is empty.
    pub(crate) fn close(&self) {
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .closed = true;
        self.shared.wake.notify_all();
    }
}

/// Jobs decompress and sort; they do not recurse deeply.
const STACK_BYTES: usize = 1024 * 1024;

impl Shared {
    fn work(&self) {
        let _abort = crate::abort::AbortOnPanic;
        let _named = self.span.enter();
        let b = Blocking::enter();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(work) = state.queue.pop_front() {
                drop(state);
                work(&b);
                state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            } else if state.closed {
                state.threads -= 1;
                return;
            } else {
                state.idle += 1;
                state = self
                    .wake
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
            }
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobPool")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn work_runs_on_several_threads_at_once() {
        let pool = JobPool::new("test", 2);
        let meet = Arc::new(Barrier::new(2));
        let (done, all) = mpsc::channel();
        for _ in 0..2 {
            let (meet, done) = (Arc::clone(&meet), done.clone());
            pool.run(move |_| {
                meet.wait();
                done.send(()).expect("the test waits");
            })
            .expect("threads");
        }
        for _ in 0..2 {
            all.recv_timeout(std::time::Duration::from_secs(10))
                .expect("both met");
        }
    }

    #[test]
    fn a_pool_of_one_keeps_the_order() {
        let pool = JobPool::new("test", 1);
        let (done, all) = mpsc::channel();
        for number in 0..100 {
            let done = done.clone();
            pool.run(move |_| done.send(number).expect("the test waits"))
                .expect("threads");
        }
        drop(done);
        assert_eq!(
            all.into_iter().take(100).collect::<Vec<_>>(),
            (0..100).collect::<Vec<_>>()
        );
        pool.close();
    }
}
