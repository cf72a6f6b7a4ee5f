use std::thread;

/// Ends the process when the thread that holds it panics: our own mistake must not leave half a
/// node running (law 6). In release builds a panic aborts by itself.
#[derive(Debug)]
pub(crate) struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            let name = thread::current().name().unwrap_or("?").to_owned();
            tracing::error!("thread {name} failed by a mistake of our own; the process ends");
            std::process::abort();
        }
    }
}
