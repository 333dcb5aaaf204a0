//! Test a policy without a server: [`review`] returns its answer to a request and settings.
//!
//! ```
//! use admission_worker::{Policy, Worker, deny, testing::review};
//! use serde_json::json;
//!
//! let no_deletes = Policy::validating("no-deletes")
//!     .judge(|request, _| (request.operation() == Some("DELETE")).then(|| deny("nothing is deleted here")));
//! let worker = Worker::new("samples", "1").policy(no_deletes);
//!
//! let answer = review(&worker, "no-deletes", json!({"operation": "DELETE"}), json!({})).unwrap();
//! assert_eq!(answer, deny("nothing is deleted here").into());
//! ```
//!
//! The policy is sent the parts that it claims as its inputs, as by the gateway. So a policy that reads more fails its
//! tests and not in production. A panic of the policy is passed on.

use std::fmt::{self, Display, Formatter};

use bytes::Bytes;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::answers::Answer;
use crate::functions::PolicyError;
use crate::json::{Json, Map};
use crate::outcomes::accepted;
use crate::policies::{Policy, Returned};
use crate::projection::document_of;
use crate::request::{InvalidDocument, Request};
use crate::settings::InvalidSettings;
use crate::worker::{RegistrationError, Worker};

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewError {
    /// The errors in the worker's registrations.
    Registration(RegistrationError),
    /// The worker holds no such policy.
    UnknownPolicy(String),
    /// All errors in the settings.
    InvalidSettings(InvalidSettings),
    /// The request is not an AdmissionRequest.
    InvalidDocument(InvalidDocument),
    /// The policy returned an invalid answer, or one that its phase does not allow.
    InvalidAnswer(String),
    /// The policy returned an error.
    Policy(PolicyError),
}

impl Display for ReviewError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registration(error) => error.fmt(out),
            Self::InvalidSettings(error) => error.fmt(out),
            Self::InvalidDocument(error) => error.fmt(out),
            Self::Policy(error) => error.fmt(out),
            Self::UnknownPolicy(message) | Self::InvalidAnswer(message) => out.write_str(message),
        }
    }
}

impl std::error::Error for ReviewError {}

/// Calls a policy with a request. In `async` tests, and for policies that need the test's runtime, use [`review_async`].
///
/// `request` is an AdmissionRequest in its JSON shape, or the parts of it that matter, or a whole AdmissionReview, as
/// recorded from a cluster; `settings` are as the operator would write them.
///
/// # Errors
/// See [`ReviewError`].
///
/// # Panics
/// If the policy does, or a runtime runs already.
pub fn review(
    worker: &Worker,
    policy: &str,
    request: impl Serialize,
    settings: impl Serialize,
) -> Result<Answer, ReviewError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(review_async(worker, policy, request, settings))
}

/// As [`review`], inside a runtime.
///
/// # Errors
/// See [`ReviewError`].
///
/// # Panics
/// If the policy does.
pub async fn review_async(
    worker: &Worker,
    policy: &str,
    request: impl Serialize,
    settings: impl Serialize,
) -> Result<Answer, ReviewError> {
    let policies = worker.checked_policies().map_err(ReviewError::Registration)?;
    let Some(held) = policies.get(policy) else {
        let names: Vec<&str> = policies.keys().map(String::as_str).collect();
        let (name, names) = (worker.name(), names.join(", "));
        return Err(ReviewError::UnknownPolicy(format!("worker {name} holds no policy {policy:?}; it holds: {names}")));
    };
    let (settings, _) = held.settings.read(&text_of(settings)?).map_err(ReviewError::InvalidSettings)?;
    // The guard cancels the token after the answer, as a served worker does.
    let cancelled = CancellationToken::new();
    let _guard = cancelled.clone().drop_guard();
    let request = document(held, request, cancelled)?;
    let answer = match (held.function)(request, settings) {
        Returned::Answer(answer) => answer,
        Returned::Future(future) => future.await,
    };
    accepted(answer.map_err(ReviewError::Policy)?, held.phase).map_err(ReviewError::InvalidAnswer)
}

/// The request, with the parts that the policy claims.
fn document(policy: &Policy, request: impl Serialize, cancelled: CancellationToken) -> Result<Request, ReviewError> {
    let given: Map = serde_json::from_slice(&text_of(request)?).map_err(|error| unreadable(&error.to_string()))?;
    let whole = given.get("request").and_then(Json::as_object).unwrap_or(&given);
    let uid = whole.get("uid").and_then(Json::as_str).unwrap_or_default().to_owned();
    let document = Json::Object(document_of(whole, &policy.inputs)).to_string();
    Request::new(document.into(), uid, cancelled).map_err(ReviewError::InvalidDocument)
}

fn text_of(value: impl Serialize) -> Result<Bytes, ReviewError> {
    serde_json::to_vec(&value).map(Bytes::from).map_err(|error| unreadable(&error.to_string()))
}

fn unreadable(message: &str) -> ReviewError {
    ReviewError::InvalidDocument(InvalidDocument::new(format!("the request is not one JSON object: {message}")))
}
