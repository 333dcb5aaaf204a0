//! What a policy answers: allow, deny, or that it could not judge. There is no fourth.
//!
//! An error is not a verdict: [`fail`] says that there is none, and the operator's failurePolicy decides what becomes of
//! the request; a denial stands whatever the failurePolicy. What the types cannot rule out (an audit annotation whose key
//! Kubernetes would refuse, a patch that is none) is kept with the answer, and makes the policy's outcome a failure.

mod denial;
mod notes;

use serde::Serialize;

use crate::changes::Change;

pub use denial::{Cause, Deny, Details};
pub(crate) use notes::Notes;
pub use notes::{Cache, LONGEST_CACHE};

/// What a policy's function returns, or what becomes an answer ([`IntoAnswer`](crate::IntoAnswer)).
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The request may pass, perhaps changed.
    Allow(Allow),
    /// The request must not pass.
    Deny(Deny),
    /// The policy could not judge.
    Failure(Failure),
}

/// The request may pass, perhaps changed. Made by [`allow`], [`patch`], [`merge`] and [`mutated`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Allow {
    pub(crate) change: Option<Change>,
    pub(crate) notes: Notes,
}

/// The policy could not judge. Made by [`fail`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub(crate) message: String,
}

/// Let the request pass as it is.
#[must_use]
pub fn allow() -> Allow {
    Allow::default()
}

/// Let the request pass changed by a JSON Patch (RFC 6902). Mutating policies only.
///
/// `operations` is whatever serializes to a list of operations over the object: of
/// [`Operation`](crate::Operation), or `json!([{"op": "add", "path": "/metadata/labels/team", "value": "a"}])`. No
/// operation leaves the object as it is. What RFC 6902 does not know makes the answer a failure.
pub fn patch(operations: impl Serialize) -> Allow {
    changed(Change::json_patch(operations))
}

/// Let the request pass changed by a JSON Merge Patch (RFC 7386), where null removes and arrays are replaced whole.
/// Mutating policies only.
///
/// `changes` is whatever serializes to an object; what does not makes the answer a failure.
pub fn merge(changes: impl Serialize) -> Allow {
    changed(Change::merge_patch(changes))
}

/// Let the request pass with the object as given, compared by the gateway with the one it sent. Mutating policies only.
///
/// `whole` is whatever serializes to an object; what does not makes the answer a failure. Read it as
/// [`Json`](crate::Json), which gives back each number as it was: `serde_json::Value` does not, and a type of your own
/// forgets the members that it does not know.
pub fn mutated(whole: impl Serialize) -> Allow {
    changed(Change::whole_object(whole))
}

/// Let the request not pass: 403 Forbidden, unless more is said.
///
/// `message` is for the person who was denied: what is wrong, and what to do.
pub fn deny(message: impl Into<String>) -> Deny {
    Deny::new(message.into())
}

/// Say that the policy could not judge; the operator's failurePolicy decides.
///
/// `message` is for the operator, what went wrong in one sentence. It reaches the user under failurePolicy Fail.
pub fn fail(message: impl Into<String>) -> Failure {
    Failure { message: message.into() }
}

fn changed(change: Result<Change, String>) -> Allow {
    let mut notes = Notes::default();
    let change = change.map_err(|wrong| notes.blame(wrong)).ok();
    Allow { change, notes }
}

impl Allow {
    /// What it changes, if anything.
    #[must_use]
    pub fn change(&self) -> Option<&Change> {
        self.change.as_ref()
    }
}

impl Failure {
    /// What went wrong.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl From<Allow> for Answer {
    fn from(answer: Allow) -> Self {
        Self::Allow(answer)
    }
}

impl From<Deny> for Answer {
    fn from(answer: Deny) -> Self {
        Self::Deny(answer)
    }
}

impl From<Failure> for Answer {
    fn from(answer: Failure) -> Self {
        Self::Failure(answer)
    }
}
