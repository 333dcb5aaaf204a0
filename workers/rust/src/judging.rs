//! From a policy call to its outcome: the part that `Review` and `ReviewStream` share.
//!
//! Every call gets an outcome. An error is not a verdict: a policy that panics, returns an error or an invalid answer, or
//! cannot read its document or settings has failed, and the operator's failurePolicy decides. The gateway receives the
//! error's type; its text, which may contain a Secret, stays in the worker's log.
//!
//! [`Judge::begin`] returns the outcome of a synchronous function directly, which keeps such a call cheap, and a future
//! otherwise. Dropping that future drops the policy's, and cancels the request's token.

use std::future::{Future, poll_fn};
use std::mem::take;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use indexmap::IndexMap;
use prost::Message;
use tokio_util::sync::CancellationToken;

use crate::answers::Answer;
use crate::contract::outcome::Verdict;
use crate::contract::{FailureReason, Outcome, PolicyCall};
use crate::functions::PolicyError;
use crate::limits::Limits;
use crate::outcomes::{accepted, failure, outcome_of};
use crate::panics::caught;
use crate::policies::{Phase, Policy, Returned};
use crate::request::Request;
use crate::settings_cache::SettingsCache;
use crate::spans::Span;

/// Bytes of a message besides one outcome: an id of up to 10 bytes, and tags and lengths of up to 6 bytes each.
const ENVELOPE_BYTES: usize = 64;

/// The policies by name, in the order in which they were registered.
pub(crate) type Policies = Arc<IndexMap<String, Policy>>;

/// Calls the policies of one served worker, and caches their settings.
pub(crate) struct Judge {
    worker: String,
    version: String,
    policies: Policies,
    message_bytes: usize,
    settings: SettingsCache,
}

/// A call that has begun.
pub(crate) enum Begun {
    Known(Outcome),
    Waiting(Pin<Box<dyn Future<Output = Outcome> + Send>>),
}

/// The policy and the uid of a call, for its outcome and its log lines.
struct Invocation {
    policy: String,
    version: String,
    phase: Phase,
    uid: String,
    message_bytes: usize,
}

impl Judge {
    pub(crate) fn new(worker: String, version: String, policies: Policies, limits: &Limits) -> Self {
        let settings = SettingsCache::new(limits);
        Self { worker, version, policies, message_bytes: limits.message_bytes, settings }
    }

    /// Begins a call, with its document's JSON text, if it has one. The timeout is left to the caller.
    pub(crate) fn begin(&self, mut call: PolicyCall, document: Option<Bytes>) -> Begun {
        let Some(policy) = self.policies.get(&call.policy) else {
            let held: Vec<&str> = self.policies.keys().map(String::as_str).collect();
            let held = if held.is_empty() { "none".to_owned() } else { held.join(", ") };
            let message = format!("worker {} holds no policy {:?}; it holds: {held}", self.worker, call.policy);
            return Begun::Known(failure(message, FailureReason::UnknownPolicy, self.version.clone()));
        };
        let invocation = Invocation {
            policy: policy.name.clone(),
            version: policy.version_in(&self.version),
            phase: policy.phase,
            uid: call.uid.clone(),
            message_bytes: self.message_bytes,
        };
        let (traceparent, tracestate) = (take(&mut call.traceparent), take(&mut call.tracestate));
        let cancelled = CancellationToken::new();
        let (request, settings) = match self.read(policy, call, document, cancelled.clone()) {
            Ok(read) => read,
            Err((message, reason)) => return Begun::Known(invocation.failed(message, reason)),
        };
        let span = Span::begin(&invocation.policy, &invocation.uid, &traceparent, &tracestate);
        match caught(|| span.run(|| (policy.function)(request, settings))) {
            Ok(Returned::Answer(answer)) => Begun::Known(invocation.returned(answer, span)),
            Err(panic) => Begun::Known(invocation.returned(Err(panic), span)),
            Ok(Returned::Future(mut future)) => Begun::Waiting(Box::pin(async move {
                let _cancel_on_drop = cancelled.drop_guard();
                let answer = poll_fn(|context| match caught(|| span.run(|| future.as_mut().poll(context))) {
                    Ok(polled) => polled,
                    Err(panic) => std::task::Poll::Ready(Err(panic)),
                });
                let answer = answer.await;
                invocation.returned(answer, span)
            })),
        }
    }

    /// The version of a policy's outcomes; for an unknown policy, the worker's.
    pub(crate) fn version_of(&self, policy: &str) -> String {
        self.policies.get(policy).map_or_else(|| self.version.clone(), |policy| policy.version_in(&self.version))
    }

    /// Reads the call's document and settings.
    fn read(
        &self,
        policy: &Policy,
        call: PolicyCall,
        document: Option<Bytes>,
        cancelled: CancellationToken,
    ) -> Result<(Request, crate::settings::Converted), (String, FailureReason)> {
        let name = &policy.name;
        if call.phase != policy.phase.message() as i32 {
            let (own, other) = (phase_name(policy.phase.message() as i32), phase_name(call.phase));
            let message = format!("policy {name} is for {own} and was called in {other}");
            return Err((message, FailureReason::UnknownPolicy));
        }
        let plain = FailureReason::Unspecified;
        let Some(document) = document else {
            return Err((format!("policy {name} was called without a document"), plain));
        };
        let settings = self
            .settings
            .read(name, &policy.settings, &call.settings)
            .map_err(|error| (format!("settings of policy {name}: {error}"), FailureReason::InvalidSettings))?;
        let request =
            Request::new(document, call.uid, cancelled).map_err(|error| (format!("policy {name}: {error}"), plain))?;
        Ok((request, settings))
    }
}

impl Invocation {
    /// The outcome of a policy's function.
    fn returned(self, answer: Result<Answer, PolicyError>, span: Span) -> Outcome {
        let (name, uid) = (&self.policy, &self.uid);
        let accepted = match answer {
            Ok(answer) => {
                accepted(answer, self.phase).map_err(|error| format!("policy {name}: InvalidAnswer: {error}"))
            }
            Err(error) => {
                tracing::error!(policy = %name, uid = %uid, "policy {name} failed with {error}");
                let text = if error.is_safe { error.text } else { "see the worker's log".to_owned() };
                let outcome = failure(
                    format!("policy {name} failed with {}: {text}", error.kind),
                    FailureReason::Unspecified,
                    self.version,
                );
                return ended(span, outcome);
            }
        };
        let outcome = match accepted {
            Ok(answer) => {
                if let Answer::Failure(failed) = &answer {
                    tracing::warn!(policy = %name, uid = %uid, "policy {name} could not judge: {}", failed.message);
                }
                outcome_of(answer, self.version.clone())
            }
            Err(message) => return ended(span, self.failed(message, FailureReason::Unspecified)),
        };
        let (size, limit) = (outcome.encoded_len(), self.message_bytes.saturating_sub(ENVELOPE_BYTES));
        if size > limit {
            let message = format!(
                "policy {name}: the answer has {size} bytes, at most {limit} fit a message: answer with a patch"
            );
            return ended(span, self.failed(message, FailureReason::Unspecified));
        }
        ended(span, outcome)
    }

    /// A failure with a message of the SDK, which contains no values.
    fn failed(&self, message: String, reason: FailureReason) -> Outcome {
        tracing::error!(policy = %self.policy, uid = %self.uid, "{message}");
        failure(message, reason, self.version.clone())
    }
}

fn ended(span: Span, outcome: Outcome) -> Outcome {
    span.end(match &outcome.verdict {
        Some(Verdict::Allow(_)) => "allow",
        Some(Verdict::Deny(_)) => "deny",
        _ => "failure",
    });
    outcome
}

fn phase_name(number: i32) -> String {
    match crate::contract::Phase::try_from(number) {
        Ok(crate::contract::Phase::Mutating) => "the mutating phase".to_owned(),
        Ok(crate::contract::Phase::Validating) => "the validating phase".to_owned(),
        _ => format!("no phase ({number})"),
    }
}
