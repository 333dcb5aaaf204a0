//! Policies worth having, each in a module of its own, and the worker that serves them.
//!
//! All of them are pure functions of their documents, claim what they read, and are idempotent: called again about an
//! object that they have changed, they change nothing. Those which look into containers leave alone what an UPDATE did not
//! bring: most of a Pod is immutable, and nobody who sets an annotation on a Deployment expects a rollout.

pub mod default_labels;
pub mod default_resources;
pub mod globs;
pub mod image_registry;
pub mod label_syntax;
pub mod no_privileged;
pub mod patterns;
pub mod pod_specs;
pub mod quantities;
pub mod required_labels;
pub mod sidecar;

use admission_worker::Worker;

/// The worker that holds the sample policies.
#[must_use]
pub fn worker() -> Worker {
    Worker::new("samples", env!("CARGO_PKG_VERSION"))
        .policy(default_labels::policy())
        .policy(default_resources::policy())
        .policy(image_registry::policy())
        .policy(no_privileged::policy())
        .policy(required_labels::policy())
        .policy(sidecar::policy())
}
