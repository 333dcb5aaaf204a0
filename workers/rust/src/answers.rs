//! A policy's answers: allow, deny, or that it could not judge.
//!
//! An error is not a verdict: [`fail`] gives no verdict, and the operator's failurePolicy decides whether the request
//! passes; a denial does not depend on the failurePolicy. An error that the types cannot prevent (an audit annotation's
//! key that Kubernetes would reject, an invalid patch) is stored in the answer, and makes the policy's outcome a failure.

mod denial;
mod notes;

use serde::Serialize;

use crate::changes::Change;

pub use denial::{Cause, Deny, Details};
pub(crate) use notes::Notes;
pub use notes::{Cache, LONGEST_CACHE};

/// An answer. A policy's function returns one, or a value that converts into one ([`IntoAnswer`](crate::IntoAnswer)).
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
/// `operations` is any value that serializes to a list of operations over the object: a list of
/// [`Operation`](crate::Operation), or `json!([{"op": "add", "path": "/metadata/labels/team", "value": "a"}])`. An empty
/// list changes nothing. An operation that RFC 6902 does not define makes the answer a failure.
pub fn patch(operations: impl Serialize) -> Allow {
    changed(Change::json_patch(operations))
}

/// Let the request pass changed by a JSON Merge Patch (RFC 7386), where null removes and arrays are replaced whole.
/// Mutating policies only.
///
/// `changes` is any value that serializes to an object; another one makes the answer a failure.
pub fn merge(changes: impl Serialize) -> Allow {
    changed(Change::merge_patch(changes))
}

/// Let the request pass with this object; the gateway compares it with the one that it sent. Mutating policies only.
///
/// `whole` is any value that serializes to an object; another one makes the answer a failure. Read the object as
/// [`Json`](crate::Json), which keeps the text of each number: `serde_json::Value` does not, and a type of your own loses
/// the members that it does not declare.
pub fn mutated(whole: impl Serialize) -> Allow {
    changed(Change::whole_object(whole))
}

/// Deny the request: 403 Forbidden, unless [`Deny::code`] sets another code.
///
/// `message` is for the denied user: what is wrong, and what to do.
pub fn deny(message: impl Into<String>) -> Deny {
    Deny::new(message.into())
}

/// Report that the policy could not judge; the operator's failurePolicy decides.
///
/// `message` is for the operator: the cause, in one sentence. Under failurePolicy Fail the user sees it too.
pub fn fail(message: impl Into<String>) -> Failure {
    Failure { message: message.into() }
}

fn changed(change: Result<Change, String>) -> Allow {
    let mut notes = Notes::default();
    let change = change.map_err(|error| notes.invalid(error)).ok();
    Allow { change, notes }
}

impl Allow {
    /// Its change, if any.
    #[must_use]
    pub fn change(&self) -> Option<&Change> {
        self.change.as_ref()
    }
}

impl Failure {
    /// The cause.
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
