//! Write a Kubernetes admission policy as a Rust function; serve it to the admission gateway over gRPC.
//!
//! ```no_run
//! use admission_worker::{Deny, InvalidDocument, Json, Policy, Request, Worker, deny};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct RequiredLabel {
//!     key: String,
//! }
//!
//! fn required_label(request: &Request, settings: &RequiredLabel) -> Result<Option<Deny>, InvalidDocument> {
//!     let Some(object) = request.object::<Json>()? else { return Ok(None) }; // a DELETE brings no object
//!     let label = object.at(["metadata", "labels", &settings.key]);
//!     Ok(label.is_none().then(|| deny(format!("label {:?} is required", settings.key))))
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     let policy = Policy::validating("required-label")
//!         .description("Denies objects that lack a label.")
//!         .inputs(["/object/metadata/labels"])
//!         .settings::<RequiredLabel>()
//!         .judge(required_label);
//!     Worker::new("labels", env!("CARGO_PKG_VERSION")).policy(policy).main()
//! }
//! ```
//!
//! This is the whole public API. `README.md` is the guide.

mod address;
mod answers;
mod changes;
mod claims;
mod codec;
mod command;
mod contract;
mod deadlines;
mod functions;
mod health;
pub mod json;
mod judging;
mod limits;
mod listening;
mod logs;
mod operations;
mod outcomes;
mod panics;
mod pointers;
mod policies;
mod probes;
mod projection;
mod request;
mod schemas;
mod server;
mod service;
mod settings;
mod settings_cache;
mod spans;
mod stages;
mod stream;
pub mod testing;
mod tls;
mod worker;

pub use answers::{
    Allow, Answer, Cache, Cause, Deny, Details, Failure, LONGEST_CACHE, allow, deny, fail, merge, mutated, patch,
};
pub use changes::Change;
pub use claims::Claim;
pub use functions::{IntoAnswer, PolicyError};
pub use json::Json;
pub use limits::Limits;
pub use listening::ServeError;
pub use operations::Operation;
pub use pointers::pointer;
pub use policies::{Phase, Policy, PolicyBuilder};
pub use request::{GroupVersionKind, GroupVersionResource, InvalidDocument, Request, UserInfo};
pub use server::{ServeOptions, Serving};
pub use settings::{Findings, InvalidSettings, NoSettings, SettingsError};
pub use tls::TlsFiles;
pub use tokio_util::sync::CancellationToken;
pub use worker::{RegistrationError, Worker};
