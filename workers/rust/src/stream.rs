//! One `ReviewStream`: many calls over one stream, each answered as soon as its outcome is known.
//!
//! The rules:
//!
//! * An id is open from its call until its outcome is written. Each open id gets exactly one outcome, in any order: a
//!   verdict, or a failure if its timeout is over, its document is missing, or the worker is full. A cancelled call gets
//!   none.
//! * If an open id is used again, both calls get one failure and the first is cancelled, since the gateway could take the
//!   verdict of one for the other's.
//! * Synchronous functions run here for a time slice; then the stream is read and written again. Each `async` function is
//!   a task of its own. So an outcome waits for another one only while a synchronous function runs.
//! * Outcomes that are known in one turn are sent in one message, up to a size.
//! * If the gateway does not read outcomes, the worker stops reading calls: unwritten outcomes are bounded.
//! * When the gateway half-closes the stream, open calls are answered, and the stream ends. When the worker stops, the
//!   stream still accepts calls, and ends when no call is open and none has arrived for [`QUIET`]. When the stream breaks,
//!   all open calls are cancelled.

mod calls;
mod outbox;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tonic::{Status, Streaming};

use crate::contract::{ReviewStreamRequest, ReviewStreamResponse, review_stream_request::request_item};
use crate::judging::Judge;
use crate::limits::{InFlight, Limits};
use crate::service::too_large;
use crate::stages::{Activity, OpenCall, QUIET, Stage, Stages, reached};

use calls::Calls;

/// Time for synchronous functions in one turn: a hundred times a turn's overhead (10 µs), and little compared with a
/// network round trip.
const SLICE: Duration = Duration::from_millis(1);

/// Serves one stream.
pub(crate) struct ReviewStream {
    calls: Calls,
    stages: Stages,
    activity: Arc<Activity>,
    _open: OpenCall,
    is_leaving: bool,
    no_more: bool,
    last: Instant,
}

impl ReviewStream {
    pub(crate) fn new(
        judge: Arc<Judge>,
        in_flight: Arc<InFlight>,
        limits: &Limits,
        stages: Stages,
        activity: Arc<Activity>,
    ) -> Self {
        let calls = Calls::new(judge, in_flight, limits);
        let open = activity.open();
        Self { calls, stages, activity, _open: open, is_leaving: false, no_more: false, last: Instant::now() }
    }

    /// Serves until the gateway half-closes, the worker leaves, or the stream breaks.
    pub(crate) async fn run(
        mut self,
        mut incoming: Streaming<ReviewStreamRequest>,
        outgoing: mpsc::Sender<Result<ReviewStreamResponse, Status>>,
    ) {
        loop {
            self.calls.settle();
            self.calls.work(SLICE);
            if self.is_over() {
                return;
            }
            let reads = !self.no_more && !self.calls.outbox.is_full();
            tokio::select! {
                biased;
                // The stream has broken; dropping `self` cancels all open calls.
                () = outgoing.closed() => return,
                permit = outgoing.reserve(), if !self.calls.outbox.is_empty() => match permit {
                    Ok(permit) => permit.send(Ok(self.calls.outbox.batch())),
                    Err(_) => return,
                },
                ended = self.calls.running.join_next(), if !self.calls.running.is_empty() => self.calls.ended(ended),
                received = incoming.message(), if reads => match received {
                    Ok(Some(batch)) => self.take(batch),
                    Ok(None) => self.no_more = true,
                    Err(broken) => {
                        let _ = outgoing.send(Err(too_large(broken))).await;
                        return;
                    }
                },
                () = reached(&mut self.stages, Stage::Leaving), if !self.is_leaving => {
                    self.is_leaving = true;
                    self.last = Instant::now();
                }
                () = tokio::time::sleep_until(self.last + QUIET), if self.is_leaving && self.calls.is_idle() => {
                    self.no_more = true;
                }
                () = tokio::task::yield_now(), if self.calls.has_work() => {}
            }
        }
    }

    fn is_over(&self) -> bool {
        self.no_more && self.calls.is_idle()
    }

    fn take(&mut self, batch: ReviewStreamRequest) {
        let arrived = Instant::now();
        self.last = arrived;
        self.activity.arrived();
        for item in batch.items {
            match item.item {
                Some(request_item::Item::Call(call)) => self.calls.open(item.id, call, &batch.documents, arrived),
                Some(request_item::Item::Cancel(_)) => self.calls.drop_call(item.id),
                // An item of a newer contract: "fields unknown to the receiver are ignored".
                None => tracing::debug!("an item without call or cancel was ignored (id {})", item.id),
            }
        }
    }
}
