//! `no-privileged`: denies privileged containers, init and ephemeral containers included.
//!
//! It judges Pods (with their `ephemeralcontainers`) and the templates of workloads, so that the author of a Deployment
//! gets the denial, and not its ReplicaSet. An UPDATE may keep a container that was privileged before, with the same
//! image: otherwise old Pods could not be labelled or deleted. Pods that such a template creates are judged as Pods.

use admission_worker::json::quoted;
use admission_worker::{Cause, Deny, InvalidDocument, Json, Policy, Request, deny};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::globs;
use crate::pod_specs::{ALL, Container, PodSpecs, claims, text};

/// Settings of no-privileged.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NoPrivileged {
    /// Globs of images that may run privileged, compared with the image as it is written; `*` matches slashes too, as in
    /// `registry.example.com/agents/*`.
    #[serde(default)]
    exempt_images: Vec<String>,
}

/// The policy.
#[must_use]
pub fn policy() -> Policy {
    Policy::validating("no-privileged")
        .description("Denies privileged containers in Pods and in the templates of what creates Pods.")
        .inputs(claims(ALL, &["name", "image", "securityContext/privileged"]))
        .settings::<NoPrivileged>()
        .judge(judge)
}

fn judge(request: &Request, settings: &NoPrivileged) -> Result<Option<Deny>, InvalidDocument> {
    if !matches!(request.operation(), Some("CREATE" | "UPDATE")) {
        return Ok(None);
    }
    let Some(pods) = PodSpecs::of(request)? else { return Ok(None) };
    let is_exempt = |container: &Container<'_>| {
        settings.exempt_images.iter().any(|glob| globs::matches(glob, text(container.value.get("image"))))
    };
    let found = pods.containers(ALL).into_iter();
    let causes: Vec<Cause> = found
        .filter(|container| is_privileged(container.value) && !was_so(container) && !is_exempt(container))
        .map(|container| cause(&container))
        .collect();
    let messages: Vec<&str> = causes.iter().map(|cause| cause.message.as_str()).collect();
    let message = format!("privileged containers are not allowed: {}", messages.join("; "));
    Ok((!causes.is_empty()).then(|| deny(message).causes(causes)))
}

fn is_privileged(container: &Json) -> bool {
    container.at(["securityContext", "privileged"]) == Some(&Json::Bool(true))
}

fn was_so(container: &Container<'_>) -> bool {
    let now = container.value.get("image");
    container.before.is_some_and(|before| is_privileged(before) && before.get("image") == now)
}

fn cause(container: &Container<'_>) -> Cause {
    let field = container.field();
    let (name, image) = (quoted(container.name()), quoted(text(container.value.get("image"))));
    Cause::new(format!("{field}.securityContext.privileged"), format!("{field} ({name}, image {image})"))
        .reason("FieldValueForbidden")
}
