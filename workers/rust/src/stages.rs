//! The stages of a worker's shutdown. It begins in lame-duck mode, in which new calls are still answered.
//!
//! | stage | health | a stream ends | connections |
//! | --- | --- | --- | --- |
//! | serving | SERVING | when the peer has half-closed it and no call is open | accepted |
//! | leaving | NOT_SERVING | also when no call is open and none has arrived for `QUIET` | accepted |
//! | closing | NOT_SERVING | as before | not accepted; existing ones finish their open calls (GOAWAY) |
//!
//! The gateway needs a moment to notice NOT_SERVING; then it sends no more calls and half-closes its stream.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// The time without a call after which a leaving worker ends a stream. A gateway receives NOT_SERVING over its watch
/// within milliseconds; a loaded one has time for many turns of its event loop.
pub(crate) const QUIET: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Serving,
    Leaving,
    Closing,
}

pub(crate) type Stages = watch::Receiver<Stage>;

/// Waits until the worker has reached a stage, or was dropped.
pub(crate) async fn reached(stages: &mut Stages, stage: Stage) {
    let _ = stages.wait_for(|now| *now >= stage).await;
}

/// The open policy calls, and when the last call arrived.
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
        self.arrived();
        OpenCall(Arc::clone(self))
    }

    /// A call has arrived.
    pub(crate) fn arrived(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether no call is open, and none has arrived for [`QUIET`] after this instant.
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
