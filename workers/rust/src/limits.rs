//! How much a worker takes on. Full means a decided refusal, never a stall.
//!
//! Every number has the arithmetic that gave it. What an operator may want to change is a flag of the worker's command;
//! all can be set in code where a worker is served by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const MIB: usize = 1024 * 1024;

/// The limits of one served worker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Calls taken and not yet worked off, over all connections; more are refused (`RESOURCE_EXHAUSTED`, on the stream a
    /// failure). 4,096: 16 gateways with 256 calls each. A call is a few KB besides its document, so these are some
    /// 20 MB.
    pub in_flight: usize,
    /// The largest gRPC message, received or sent, in bytes. 41,048,576: the gateway accepts bodies of 20 MB; a document
    /// is at most that, mutating policies before this one may have let it grow, and a whole object that goes back may be
    /// larger again. Twice the body, and 1 MiB for settings and what stands around; the gateway's own limit is the same.
    pub message_bytes: usize,
    /// Up to which size outcomes are gathered into one message of the stream. 4 MiB: gRPC's own default for what a
    /// receiver accepts, so that a gateway which has set no limit can read every batch. A larger outcome travels alone.
    pub batch_bytes: usize,
    /// Converted settings that are kept, over all policies. 256: one for each policy of a large configuration.
    pub settings_kept: usize,
    /// The JSON text of all settings that are kept together. 16 MiB: a custom resource is at most 1.5 MB (etcd's limit),
    /// so ten of the largest fit.
    pub settings_kept_bytes: usize,
    /// For open calls when the worker is told to stop. 8 s: a gateway that started it kills it after 10, Kubernetes
    /// after 30 by default; 2 are left for the rest of the shutdown.
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

/// Counts the calls that are being worked on, and says whether one more may be taken.
#[derive(Debug)]
pub(crate) struct InFlight {
    limit: usize,
    count: AtomicUsize,
}

/// A place in flight, free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<InFlight>);

impl InFlight {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, count: AtomicUsize::new(0) })
    }

    /// A place for one call; None: there is no room.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Place> {
        let place = Place(Arc::clone(self));
        // Beyond the limit the new place is dropped at once, which counts it off again.
        (self.count.fetch_add(1, Ordering::Relaxed) < self.limit).then_some(place)
    }

    /// The sentence for whoever is refused: who, limit, next step.
    pub(crate) fn refusal(&self) -> String {
        format!(
            "the worker has its limit of {} calls in flight: run more replicas, or raise --in-flight \
             (ADMISSION_WORKER_IN_FLIGHT)",
            self.limit
        )
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}
