//! A worker: a name, a version, and policies.

use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::judging::Policies;
use crate::policies::Policy;
use crate::server::{ServeOptions, Served, Serving};
use crate::{ServeError, command, probes};

/// Holds policies and serves them.
#[derive(Clone)]
pub struct Worker {
    name: String,
    version: String,
    policies: Vec<Policy>,
}

/// An error of the author: all errors in the registrations. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistrationError(pub Vec<String>);

impl Display for RegistrationError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.join("; "))
    }
}

impl std::error::Error for RegistrationError {}

impl Worker {
    /// A worker without policies.
    ///
    /// `name` is for logs, such as `labels`; it may differ from the name in the gateway's configuration. `version` is that
    /// of the worker's build, such as `env!("CARGO_PKG_VERSION")` or a commit. It must change whenever a verdict may
    /// change: it is part of the cache key.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), policies: Vec::new() }
    }

    /// Adds a policy. [`check`](Self::check) reports its errors.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policies.push(policy);
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Its policies, in the order in which they were added.
    #[must_use]
    pub fn policies(&self) -> &[Policy] {
        &self.policies
    }

    /// Checks the registrations. `serve` and `main` do so too; call it in a test to find errors earlier.
    ///
    /// # Errors
    /// All errors in the registrations: an invalid or duplicate name, an invalid claim, settings that are not a JSON
    /// object, an empty version.
    pub fn check(&self) -> Result<(), RegistrationError> {
        self.checked_policies().map(|_| ())
    }

    /// Serves until the returned value is stopped or dropped, for tests and inside a program.
    ///
    /// `address` is `HOST:PORT` (port 0: any), `unix:PATH` or `unix:///ABSOLUTE`.
    ///
    /// # Errors
    /// An error in a registration, an address on which the worker cannot listen, a certificate that cannot be used.
    pub async fn serve(&self, address: &str, options: ServeOptions) -> Result<Serving, ServeError> {
        let policies = self.checked_policies().map_err(|error| ServeError(error.to_string()))?;
        let address = address.parse().map_err(ServeError)?;
        let served = Served { worker: self.name.clone(), version: self.version.clone(), policies };
        Serving::begin(served, &address, options).await
    }

    /// Runs the worker's command: serves until SIGTERM or SIGINT. Exit codes: 0 stopped by a signal; 1 could not listen,
    /// or an error in a registration; 2 a wrong flag or environment variable.
    #[must_use]
    pub fn main(self) -> ExitCode {
        command::run(self)
    }

    /// With the probe policies for the conformance kit.
    pub(crate) fn with_probes(mut self) -> Self {
        self.policies.extend(probes::policies());
        self
    }

    /// The policies by name, if all are valid.
    pub(crate) fn checked_policies(&self) -> Result<Policies, RegistrationError> {
        let name = &self.name;
        let mut errors = Vec::new();
        if self.version.is_empty() {
            errors
                .push(format!("worker {name:?}: a version is required, such as \"1.0.0\"; verdicts are cached by it"));
        }
        let mut policies = IndexMap::new();
        for policy in &self.policies {
            errors.extend(policy.errors.iter().cloned());
            if policies.insert(policy.name.clone(), policy.clone()).is_some() {
                errors.push(format!("worker {name}: a policy {:?} is registered already", policy.name));
            }
        }
        if errors.is_empty() { Ok(Arc::new(policies)) } else { Err(RegistrationError(errors)) }
    }
}
