//! The sample policies, each in a module of its own, and the worker that serves them.
//!
//! Each is a pure function of its document, claims what it reads, and is idempotent: called again with an object that it
//! has changed, it changes nothing. Policies that read containers ignore those that an UPDATE does not change: most of a
//! Pod is immutable, and an annotation on a Deployment must not cause a rollout.

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
