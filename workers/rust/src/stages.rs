//! How a worker ends: lame-duck first, so that whoever still sends is still answered.
//!
//! | stage | health | streams | connections |
//! | --- | --- | --- | --- |
//! | serving | SERVING | until the peer half-closes, and nothing of them is open | taken |
//! | leaving | NOT_SERVING | also until nothing of them is open and nothing has come for a while | taken |
//! | closing | NOT_SERVING | as before | none are taken; those that are there finish what is open (GOAWAY) |
//!
//! The gateway needs a moment to hear of it, then sends nothing more and half-closes its stream.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// For so long nothing has come before a worker that is leaving takes it that nothing more will: a gateway hears of
/// NOT_SERVING over its watch within milliseconds, and a loaded one is given many of its loop's turns.
pub(crate) const QUIET: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Serving,
    Leaving,
    Closing,
}

pub(crate) type Stages = watch::Receiver<Stage>;

/// Waits until the worker has come so far. Whoever held the worker and is gone has ended it.
pub(crate) async fn reached(stages: &mut Stages, stage: Stage) {
    let _ = stages.wait_for(|now| *now >= stage).await;
}

/// The calls of policies that are open, and when the last call came.
#[derive(Debug)]
pub(crate) struct Activity {
    open: AtomicUsize,
    last: Mutex<Instant>,
}

/// An open call, until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenCall(Arc<Activity>);

impl Activity {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { open: AtomicUsize::new(0), last: Mutex::new(Instant::now()) })
    }

    pub(crate) fn open(self: &Arc<Self>) -> OpenCall {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.called();
        OpenCall(Arc::clone(self))
    }

    /// A call has come.
    pub(crate) fn called(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether nothing is open, and nothing has come since then nor for a while.
    pub(crate) fn is_quiet(&self, since: Instant) -> bool {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        self.open.load(Ordering::Relaxed) == 0 && last.max(since).elapsed() >= QUIET
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
