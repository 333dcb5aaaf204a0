//! Test a policy without a server: a request and settings in, its answer out.
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
//! The policy is sent what the gateway would send it: no more than it claims as its inputs. So a policy that reads what it
//! does not claim fails its tests, and not its first day in a cluster. A panic of the policy comes through.

use std::fmt::{self, Display, Formatter};

use bytes::Bytes;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::answers::Answer;
use crate::functions::PolicyError;
use crate::json::{Json, Map};
use crate::outcomes::accepted;
use crate::policies::{Called, Policy};
use crate::projection::document_of;
use crate::request::{InvalidDocument, Request};
use crate::settings::InvalidSettings;
use crate::worker::{RegistrationError, Worker};

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewError {
    /// What is wrong with what the worker registered.
    Registration(RegistrationError),
    /// The worker holds no such policy.
    UnknownPolicy(String),
    /// All that is wrong with the settings.
    InvalidSettings(InvalidSettings),
    /// The request is no AdmissionRequest.
    InvalidDocument(InvalidDocument),
    /// The policy answered what means nothing in its phase.
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

/// What a policy answers to a request. In `async` tests, and for policies that need a runtime of the test's own:
/// [`review_async`].
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
    let policies = worker.sound().map_err(ReviewError::Registration)?;
    let Some(held) = policies.get(policy) else {
        let names: Vec<&str> = policies.keys().map(String::as_str).collect();
        let (name, names) = (worker.name(), names.join(", "));
        return Err(ReviewError::UnknownPolicy(format!("worker {name} holds no policy {policy:?}; it holds: {names}")));
    };
    let (settings, _) = held.settings.read(&text_of(settings)?).map_err(ReviewError::InvalidSettings)?;
    // The guard cancels when the answer is there, as serving does.
    let cancelled = CancellationToken::new();
    let _guard = cancelled.clone().drop_guard();
    let request = document(held, request, cancelled)?;
    let answer = match (held.function)(request, settings) {
        Called::Answered(answer) => answer,
        Called::Waiting(waiting) => waiting.await,
    };
    accepted(answer.map_err(ReviewError::Policy)?, held.phase).map_err(ReviewError::InvalidAnswer)
}

/// What the policy is shown of a request.
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
