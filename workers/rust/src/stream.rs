//! One `ReviewStream`: many calls over one connection, each answered as soon as it is known.
//!
//! The rules:
//!
//! * An id is open from its call until its outcome is written. Each open id gets exactly one outcome, in any order: a
//!   verdict, or a failure when its time is over, its document is not there, or the worker is full. A cancelled one gets
//!   none.
//! * An id that comes again while it is open is two questions with one name: the first is dropped and a failure is the
//!   answer to both, since a verdict could be taken for the other's.
//! * Plain functions run here, for a slice of time at once; then the stream is read and written again. Whatever waits is
//!   a task of its own. So an outcome waits for no other one, a plain function's excepted while it runs.
//! * Everything that is known in one turn travels in one message, up to a size.
//! * A gateway that does not read its answers is not read either: what is not written is bounded.
//! * When the gateway half-closes, what is open is answered, and the stream ends; so it does when the worker is leaving
//!   and nothing has come for a while. When the stream breaks, everything open is dropped, and so cancelled.

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

/// Time for plain functions before the stream is read and written again: a hundred turns' overhead (10 µs), so it costs
/// a hundredth; and less than anybody waiting for an answer over a network notices.
const SLICE: Duration = Duration::from_millis(1);

/// Serves one stream.
pub(crate) struct Conversation {
    calls: Calls,
    stages: Stages,
    activity: Arc<Activity>,
    _open: OpenCall,
    is_leaving: bool,
    no_more: bool,
    last: Instant,
}

impl Conversation {
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

    /// Answers until the gateway half-closes, the worker leaves, or the stream breaks.
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
                // The gateway has gone, and everything that is open with it.
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
        self.activity.called();
        for item in batch.items {
            match item.item {
                Some(request_item::Item::Call(call)) => self.calls.open(item.id, call, &batch.documents, arrived),
                Some(request_item::Item::Cancel(_)) => self.calls.drop_call(item.id),
                // Of a newer contract: "fields unknown to the receiver are ignored".
                None => tracing::debug!("an item without call or cancel was ignored (id {})", item.id),
            }
        }
    }
}
