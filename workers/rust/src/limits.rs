//! The limits of a worker. A full worker refuses calls at once; calls never hang.
//!
//! Every number has the arithmetic that gave it. Those that an operator may want to change are flags of the worker's
//! command; `Worker::serve` accepts all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const MIB: usize = 1024 * 1024;

/// The limits of one served worker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Concurrent calls over all connections; more are refused (`RESOURCE_EXHAUSTED`, on the stream a failure). 4,096: 16
    /// gateways with 256 calls each. A call is a few KB besides its document, so these are some 20 MB.
    pub in_flight: usize,
    /// The largest gRPC message, received or sent, in bytes. 41,048,576: the gateway accepts bodies of 20 MB; a document
    /// is at most that, mutating policies before this one may have enlarged it, and a whole object in an answer may be
    /// larger again. Twice the body, and 1 MiB for settings and the other fields; the gateway's own limit is the same.
    pub message_bytes: usize,
    /// Up to which size outcomes are batched into one message of the stream. 4 MiB: gRPC's default limit of a receiver,
    /// so that a gateway that sets no limit can read every batch. A larger outcome is sent alone.
    pub batch_bytes: usize,
    /// Converted settings that are cached, over all policies. 256: one for each policy of a large configuration.
    pub settings_kept: usize,
    /// The JSON text of all cached settings together. 16 MiB: a custom resource is at most 1.5 MB (etcd's limit), so ten
    /// of the largest fit.
    pub settings_kept_bytes: usize,
    /// The time for open calls when the worker stops. 8 s: the gateway kills a worker that it started after 10,
    /// Kubernetes after 30 by default; 2 are left for the rest of the shutdown.
    pub grace_period: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            in_flight: 4096,
            message_bytes: 2 * 20_000_000 + MIB,
            batch_bytes: 4 * MIB,
            settings_kept: 256,
            settings_kept_bytes: 16 * MIB,
            grace_period: Duration::from_secs(8),
        }
    }
}

/// Counts the calls in flight, up to a limit.
#[derive(Debug)]
pub(crate) struct InFlight {
    limit: usize,
    count: AtomicUsize,
}

/// The permit of one call in flight, released when it is dropped.
#[derive(Debug)]
pub(crate) struct Permit(Arc<InFlight>);

impl InFlight {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, count: AtomicUsize::new(0) })
    }

    /// A permit for one call; None: the limit is reached.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Permit> {
        let permit = Permit(Arc::clone(self));
        // Beyond the limit the new permit is dropped at once, which decrements the count again.
        (self.count.fetch_add(1, Ordering::Relaxed) < self.limit).then_some(permit)
    }

    /// The message of a refused call.
    pub(crate) fn refusal(&self) -> String {
        format!(
            "the worker has its limit of {} calls in flight: run more replicas, or raise --in-flight \
             (ADMISSION_WORKER_IN_FLIGHT)",
            self.limit
        )
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}
