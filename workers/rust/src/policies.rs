//! A policy: a name, a phase, a function, its settings and its claims.
//!
//! Errors in a registration are stored in the policy. [`Worker::check`](crate::Worker::check), which runs before the
//! worker serves, reports all of them at once.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::answers::Answer;
use crate::claims::Claim;
use crate::contract;
use crate::functions::{IntoAnswer, PolicyError};
use crate::request::Request;
use crate::settings::{Check, Converted, Findings, NoSettings, SettingsType};

/// Kubernetes' two admission phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Policies may change the object, one after another.
    Mutating,
    /// Policies allow or deny, at the same time.
    Validating,
}

impl Phase {
    pub(crate) fn message(self) -> contract::Phase {
        match self {
            Self::Mutating => contract::Phase::Mutating,
            Self::Validating => contract::Phase::Validating,
        }
    }
}

/// The result of a policy's function.
pub(crate) enum Returned {
    Answer(Result<Answer, PolicyError>),
    Future(Pin<Box<dyn Future<Output = Result<Answer, PolicyError>> + Send>>),
}

type Function = dyn Fn(Request, Converted) -> Returned + Send + Sync;

/// A policy that can be registered with a worker. Made by [`Policy::validating`] and [`Policy::mutating`].
#[derive(Clone)]
pub struct Policy {
    pub(crate) name: String,
    pub(crate) phase: Phase,
    pub(crate) description: String,
    pub(crate) version: String,
    pub(crate) inputs: Claim,
    pub(crate) writes: Claim,
    pub(crate) settings: SettingsType,
    pub(crate) function: Arc<Function>,
    pub(crate) errors: Vec<String>,
}

/// A policy without its function, with settings of type `S`.
#[must_use = "a policy has a function: judge(...) or judge_async(...)"]
pub struct PolicyBuilder<S> {
    name: String,
    phase: Phase,
    description: String,
    version: String,
    inputs: Claim,
    writes: Claim,
    check: Option<Arc<Check<S>>>,
}

impl Policy {
    /// A policy that allows or denies, and changes nothing. `name` is a DNS-1123 label; the configuration's `policy`
    /// refers to it.
    pub fn validating(name: impl Into<String>) -> PolicyBuilder<NoSettings> {
        PolicyBuilder::new(name.into(), Phase::Validating)
    }

    /// A policy that allows, perhaps with a change, or denies.
    pub fn mutating(name: impl Into<String>) -> PolicyBuilder<NoSettings> {
        PolicyBuilder::new(name.into(), Phase::Mutating)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The phase in which it is called.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The version of its outcomes: its own, or else its worker's.
    pub(crate) fn version_in(&self, worker: &str) -> String {
        if self.version.is_empty() { worker.to_owned() } else { self.version.clone() }
    }

    /// Its PolicyDescription in the response of `Describe`.
    pub(crate) fn message(&self) -> contract::PolicyDescription {
        contract::PolicyDescription {
            name: self.name.clone(),
            version: self.version.clone(),
            phases: vec![self.phase.message() as i32],
            inputs: self.inputs.message(),
            writes: self.writes.message(),
            settings_schema: self.settings.schema.clone(),
            description: self.description.clone(),
        }
    }
}

impl<S> PolicyBuilder<S> {
    fn new(name: String, phase: Phase) -> Self {
        let (inputs, writes) = (Claim::NotSaid, Claim::NotSaid);
        Self { name, phase, description: String::new(), version: String::new(), inputs, writes, check: None }
    }

    /// One or two sentences for the operator: what the policy is for.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    /// The policy's own version, if it changes more rarely than its worker's.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Which parts of the AdmissionRequest it reads: JSON Pointers such as `/object/metadata/labels` (a segment `*` is
    /// every element or member), or [`Claim::Everything`]. The policy is sent only these, and they are part of the cache
    /// key. Default: all that the operator grants.
    pub fn inputs(mut self, places: impl Into<Claim>) -> Self {
        self.inputs = places.into();
        self
    }

    /// Which parts of the object it may change: JSON Pointers over the object, or [`Claim::Everything`]. Mutating
    /// policies only. Default: all that the operator grants.
    pub fn writes(mut self, places: impl Into<Claim>) -> Self {
        self.writes = places.into();
        self
    }

    /// The type of its settings: a struct that derives `Deserialize` and `JsonSchema`. `#[serde(deny_unknown_fields)]`
    /// makes an unknown member an error; otherwise it is a warning.
    pub fn settings<T>(self) -> PolicyBuilder<T>
    where
        T: DeserializeOwned + JsonSchema + Send + Sync + 'static,
    {
        let Self { name, phase, description, version, inputs, writes, .. } = self;
        PolicyBuilder { name, phase, description, version, inputs, writes, check: None }
    }

    /// A further check of the converted settings, for rules that a type cannot express. Call it after `settings`.
    pub fn check(mut self, check: impl Fn(&S, &mut Findings) + Send + Sync + 'static) -> Self {
        self.check = Some(Arc::new(check));
        self
    }
}

impl<S: DeserializeOwned + JsonSchema + Send + Sync + 'static> PolicyBuilder<S> {
    /// The policy with a synchronous function, which takes microseconds and waits for nothing. It runs where the calls are
    /// read, so other calls of the same stream wait for it.
    #[must_use]
    pub fn judge<F, A>(self, function: F) -> Policy
    where
        F: Fn(&Request, &S) -> A + Send + Sync + 'static,
        A: IntoAnswer,
    {
        self.registered(move |request, settings| Returned::Answer(function(&request, &settings).into_answer()))
    }

    /// The policy with an `async` function, which may wait. Each call is a task of its own. When the gateway no longer
    /// waits for the answer, its future is dropped, and [`Request::cancelled`] notifies what it started elsewhere.
    #[must_use]
    pub fn judge_async<F, W>(self, function: F) -> Policy
    where
        F: Fn(Request, Arc<S>) -> W + Send + Sync + 'static,
        W: Future<Output: IntoAnswer> + Send + 'static,
    {
        self.registered(move |request, settings| {
            let future = function(request, settings);
            Returned::Future(Box::pin(async move { future.await.into_answer() }))
        })
    }

    fn registered(self, function: impl Fn(Request, Arc<S>) -> Returned + Send + Sync + 'static) -> Policy {
        let Self { name, phase, description, version, inputs, writes, check } = self;
        let settings = SettingsType::new(check);
        let mut errors = Vec::new();
        if !is_dns_label(&name) {
            errors.push(format!("policy {name:?}: the name must be a DNS-1123 label such as \"required-labels\""));
        }
        if phase == Phase::Validating && writes != Claim::NotSaid {
            errors.push(format!("policy {name}: writes: a validating policy changes nothing; leave them out"));
        }
        if !settings.is_object {
            let kind = std::any::type_name::<S>();
            errors.push(format!(
                "policy {name}: settings: must be a type that is a JSON object, such as a struct, is {kind}"
            ));
        }
        let mut checked = |claim: Result<Claim, String>| claim.map_err(|error| errors.push(error)).unwrap_or_default();
        let inputs = checked(inputs.of_inputs(&format!("policy {name}: inputs")));
        let writes = checked(writes.of_writes(&format!("policy {name}: writes")));
        let function = move |request, settings: Converted| match settings.downcast::<S>() {
            Ok(settings) => function(request, settings),
            Err(_) => unreachable!("settings are cached by policy, and converted into its type"),
        };
        Policy { name, phase, description, version, inputs, writes, settings, function: Arc::new(function), errors }
    }
}

/// RFC 1123's label as Kubernetes has it: "at most 63 characters, only lowercase alphanumeric characters or '-', start
/// and end with an alphanumeric character".
fn is_dns_label(name: &str) -> bool {
    let is_end = |c: Option<&u8>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let bytes = name.as_bytes();
    let all = bytes.iter().all(|c| *c == b'-' || c.is_ascii_lowercase() || c.is_ascii_digit());
    bytes.len() <= 63 && all && is_end(bytes.first()) && is_end(bytes.last())
}
