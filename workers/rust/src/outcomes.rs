//! Conversion of answers into the contract's Outcomes. An answer that the phase does not allow is a failure.

use crate::answers::{Allow, Answer, Cache, Deny, Notes};
use crate::contract::outcome::Verdict;
use crate::contract::{self, Outcome, cache_hint};
use crate::policies::Phase;

/// Checks an answer: it must be valid, and allowed in the phase.
pub(crate) fn accepted(answer: Answer, phase: Phase) -> Result<Answer, String> {
    let notes = match &answer {
        Answer::Allow(allowed) => &allowed.notes,
        Answer::Deny(denied) => &denied.notes,
        Answer::Failure(_) => return Ok(answer),
    };
    if let Some(error) = &notes.error {
        return Err(error.clone());
    }
    match &answer {
        Answer::Allow(Allow { change: Some(change), .. }) if phase == Phase::Validating => {
            Err(format!("returned a change ({}): only a mutating policy may change the object", change.name()))
        }
        _ => Ok(answer),
    }
}

/// The answer as an Outcome, with the version of the policy, equal to the one in its description.
pub(crate) fn outcome_of(answer: Answer, version: String) -> Outcome {
    match answer {
        Answer::Allow(Allow { change, notes }) => {
            let change = change.and_then(|change| change.message());
            noted(Verdict::Allow(contract::Allow { change }), notes, version)
        }
        Answer::Deny(denied) => {
            let verdict = Verdict::Deny(denial(&denied));
            noted(verdict, denied.notes, version)
        }
        Answer::Failure(failed) => failure(failed.message, contract::FailureReason::Unspecified, version),
    }
}

/// An Outcome without a verdict, with a message of one sentence.
pub(crate) fn failure(message: String, reason: contract::FailureReason, version: String) -> Outcome {
    let verdict = Verdict::Failure(contract::Failure { message, reason: reason as i32 });
    Outcome { verdict: Some(verdict), version, ..Outcome::default() }
}

fn noted(verdict: Verdict, notes: Notes, version: String) -> Outcome {
    let Notes { warnings, audit_annotations, cache, error: _ } = notes;
    let cache = cache.map(|cache| contract::CacheHint { hint: Some(hint(cache)) });
    Outcome { verdict: Some(verdict), warnings, audit_annotations, cache, version }
}

fn hint(cache: Cache) -> cache_hint::Hint {
    match cache {
        Cache::NoStore => cache_hint::Hint::NoStore(cache_hint::NoStore {}),
        Cache::For(time) => cache_hint::Hint::Ttl(prost_types::Duration {
            seconds: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            nanos: i32::try_from(time.subsec_nanos()).unwrap_or_default(),
        }),
    }
}

fn denial(denied: &Deny) -> contract::Deny {
    let about = denied.details.clone();
    let causes = denied.causes.iter().map(|cause| contract::StatusCause {
        reason: cause.reason.clone(),
        message: cause.message.clone(),
        field: cause.field.clone(),
    });
    let details = contract::StatusDetails {
        name: about.name,
        group: about.group,
        kind: about.kind,
        uid: about.uid,
        causes: causes.collect(),
        retry_after_seconds: about.retry_after_seconds,
    };
    contract::Deny {
        code: Some(denied.code),
        message: denied.message.clone(),
        reason: denied.sent_reason().to_owned(),
        details: (details != contract::StatusDetails::default()).then_some(details),
    }
}
