//! The open calls of one stream: waiting calls, and calls whose policy runs.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::Instant;

use crate::contract::policy_call::DocumentSource;
use crate::contract::{FailureReason, Outcome, PolicyCall};
use crate::deadlines::timeout_in;
use crate::judging::{Begun, Judge};
use crate::limits::{InFlight, Limits, Permit};
use crate::outcomes::failure;

use super::outbox::Outbox;

pub(crate) struct Calls {
    judge: Arc<Judge>,
    in_flight: Arc<InFlight>,
    open: HashMap<u64, Open>,
    waiting: VecDeque<(u64, u64)>,
    turns: u64,
    pub(crate) running: JoinSet<Ended>,
    pub(crate) outbox: Outbox,
}

/// An open call. `turn` distinguishes it from an earlier one with the same id.
struct Open {
    turn: u64,
    work: Work,
}

enum Work {
    Waiting(Box<WaitingCall>),
    Running(AbortHandle),
}

/// A call that has not begun. It counts as in flight until its function has ended.
struct WaitingCall {
    call: PolicyCall,
    document: Option<Bytes>,
    deadline: Option<Instant>,
    permit: Permit,
}

pub(crate) struct Ended {
    id: u64,
    turn: u64,
    outcome: Outcome,
}

impl Calls {
    pub(crate) fn new(judge: Arc<Judge>, in_flight: Arc<InFlight>, limits: &Limits) -> Self {
        let (open, waiting, running) = (HashMap::new(), VecDeque::new(), JoinSet::new());
        Self { judge, in_flight, open, waiting, turns: 0, running, outbox: Outbox::new(limits) }
    }

    /// Adds a call of a message with these documents.
    pub(crate) fn open(&mut self, id: u64, mut call: PolicyCall, documents: &[Bytes], arrived: Instant) {
        if self.open.contains_key(&id) || self.outbox.holds(id) {
            self.drop_call(id);
            let message = format!("the stream has an open call with id {id} already: ids must be unique");
            self.fail(id, &call, message);
            return;
        }
        let Some(permit) = self.in_flight.enter() else {
            let refusal = self.in_flight.refusal();
            self.fail(id, &call, refusal);
            return;
        };
        let document = match call.document_source.take() {
            Some(DocumentSource::Document(document)) => Some(document),
            Some(DocumentSource::DocumentIndex(index)) => {
                let found = usize::try_from(index).ok().and_then(|index| documents.get(index));
                let Some(document) = found else {
                    let count = documents.len();
                    self.fail(id, &call, format!("document_index is {index}, and its message has {count} documents"));
                    return;
                };
                Some(document.clone())
            }
            None => None,
        };
        let deadline = call.timeout.as_ref().and_then(timeout_in).map(|timeout| arrived + timeout);
        self.turns += 1;
        let waiting = Box::new(WaitingCall { call, document, deadline, permit });
        self.open.insert(id, Open { turn: self.turns, work: Work::Waiting(waiting) });
        self.waiting.push_back((id, self.turns));
    }

    /// Cancels a call. An unknown id is ignored.
    pub(crate) fn drop_call(&mut self, id: u64) {
        self.outbox.remove(id);
        if let Some(Open { work: Work::Running(task), .. }) = self.open.remove(&id) {
            task.abort();
        }
    }

    /// Begins waiting calls for one time slice.
    pub(crate) fn work(&mut self, slice: Duration) {
        let end = Instant::now() + slice;
        while self.has_work() {
            let Some((id, turn)) = self.waiting.pop_front() else { return };
            if self.open.get(&id).is_some_and(|open| open.turn == turn) {
                if let Some(Open { work: Work::Waiting(waiting), .. }) = self.open.remove(&id) {
                    self.begin(id, turn, *waiting);
                }
            }
            if Instant::now() >= end {
                return;
            }
        }
    }

    /// Whether a call waits and may begin.
    pub(crate) fn has_work(&self) -> bool {
        !self.waiting.is_empty() && !self.outbox.is_full()
    }

    /// Adds the outcomes of all tasks that have ended.
    pub(crate) fn settle(&mut self) {
        while let Some(ended) = self.running.try_join_next() {
            self.ended(Some(ended));
        }
    }

    /// Adds the outcome of a task. An aborted task has none.
    pub(crate) fn ended(&mut self, ended: Option<Result<Ended, JoinError>>) {
        let Some(Ok(Ended { id, turn, outcome })) = ended else { return };
        if self.open.get(&id).is_some_and(|open| open.turn == turn) {
            self.open.remove(&id);
            self.outbox.put(id, outcome);
        }
    }

    /// Whether no call is open and no outcome is unwritten.
    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty() && self.outbox.is_empty()
    }

    fn begin(&mut self, id: u64, turn: u64, waiting: WaitingCall) {
        let WaitingCall { call, document, deadline, permit } = waiting;
        let is_late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let late = Late { policy: call.policy.clone(), uid: call.uid.clone(), timeout: call.timeout };
        let version = self.judge.version_of(&call.policy);
        if is_late() {
            self.outbox.put(id, late.outcome(version));
            return;
        }
        match self.judge.begin(call, document) {
            Begun::Known(outcome) => self.outbox.put(id, if is_late() { late.outcome(version) } else { outcome }),
            Begun::Waiting(waiting) => {
                let task = self.running.spawn(async move {
                    let outcome = match deadline {
                        None => waiting.await,
                        Some(deadline) => {
                            let answer = tokio::time::timeout_at(deadline, waiting).await;
                            answer.unwrap_or_else(|_| late.outcome(version))
                        }
                    };
                    drop(permit);
                    Ended { id, turn, outcome }
                });
                self.open.insert(id, Open { turn, work: Work::Running(task) });
            }
        }
    }

    fn fail(&mut self, id: u64, call: &PolicyCall, message: String) {
        tracing::error!(policy = %call.policy, uid = %call.uid, "{message}");
        let version = self.judge.version_of(&call.policy);
        self.outbox.put(id, failure(message, FailureReason::Unspecified, version));
    }
}

/// The parts of a call for its outcome after its timeout.
struct Late {
    policy: String,
    uid: String,
    timeout: Option<prost_types::Duration>,
}

impl Late {
    fn outcome(self, version: String) -> Outcome {
        let Self { policy, uid, timeout } = self;
        let seconds = timeout.as_ref().and_then(timeout_in).unwrap_or_default().as_secs_f64();
        let message = format!("policy {policy}: no answer within the call's timeout of {seconds} s");
        tracing::warn!(policy = %policy, uid = %uid, "{message}");
        failure(message, FailureReason::Unspecified, version)
    }
}
