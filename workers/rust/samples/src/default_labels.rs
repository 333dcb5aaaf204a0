//! `default-labels`: adds labels that an object lacks, and never overwrites one.
//!
//! It ignores subresources, whose objects have no labels or cannot change them.

use admission_worker::json::quoted;
use admission_worker::{Allow, Findings, InvalidDocument, Json, Operation, Policy, Request, patch, pointer};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::label_syntax::{is_key, is_value};

/// Settings of default-labels.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DefaultLabels {
    /// The value of each label that is added where it is missing.
    labels: IndexMap<String, String>,
}

/// The policy.
#[must_use]
pub fn policy() -> Policy {
    Policy::mutating("default-labels")
        .description("Adds labels that an object lacks.")
        .inputs(["/object/metadata/labels"])
        .writes(["/metadata/labels"])
        .settings::<DefaultLabels>()
        .check(check)
        .judge(judge)
}

/// Reports labels that Kubernetes does not accept.
fn check(settings: &DefaultLabels, findings: &mut Findings) {
    for (key, value) in &settings.labels {
        if !is_key(key) {
            findings.error(pointer(["labels", key]), format!("{} cannot be a label's key", quoted(key)));
        }
        if !is_value(value) {
            findings.error(pointer(["labels", key]), format!("{} cannot be a label's value", quoted(value)));
        }
    }
}

fn judge(request: &Request, settings: &DefaultLabels) -> Result<Option<Allow>, InvalidDocument> {
    let is_write = matches!(request.operation(), Some("CREATE" | "UPDATE"));
    let Some(object) = request.object::<Json>()? else { return Ok(None) };
    if !is_write || request.sub_resource().is_some_and(|name| !name.is_empty()) || settings.labels.is_empty() {
        return Ok(None);
    }
    let Some(metadata) = object.get("metadata").filter(|metadata| metadata.as_object().is_some()) else {
        return Ok(Some(patch([Operation::add("/metadata", IndexMap::from([("labels", &settings.labels)]))])));
    };
    let Some(labels) = metadata.get("labels").and_then(Json::as_object) else {
        return Ok(Some(patch([Operation::add("/metadata/labels", &settings.labels)])));
    };
    let missing = settings.labels.iter().filter(|(key, _)| !labels.contains_key(*key));
    let operations = missing.map(|(key, value)| Operation::add(pointer(["metadata", "labels", key]), value));
    Ok(Some(patch(operations.collect::<Vec<_>>())))
}
