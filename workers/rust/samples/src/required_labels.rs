//! `required-labels`: denies objects without the labels that the operator requires, or whose values do not match.
//!
//! A denial names all missing and mismatching labels. The policy does not judge DELETE and CONNECT, which have no object,
//! and subresources: a Scale has no labels of its own, and a status update cannot change labels.

use admission_worker::json::{Map, quoted};
use admission_worker::{Cause, Deny, Findings, InvalidDocument, Json, Policy, Request, deny, pointer};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::label_syntax::is_key;
use crate::patterns::Pattern;

/// Settings of required-labels.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequiredLabels {
    /// For each required key a regular expression (RE2's) that the whole value must match, or `""` for any value.
    labels: IndexMap<String, Pattern>,
}

/// The policy.
#[must_use]
pub fn policy() -> Policy {
    Policy::validating("required-labels")
        .description("Denies objects that lack a required label, or whose label does not match.")
        .inputs(["/object/metadata/labels"])
        .settings::<RequiredLabels>()
        .check(check)
        .judge(judge)
}

/// Reports invalid label keys and regular expressions.
fn check(settings: &RequiredLabels, findings: &mut Findings) {
    for (key, pattern) in &settings.labels {
        let place = pointer(["labels", key]);
        if !is_key(key) {
            findings.error(&place, format!("{} cannot be a label's key", quoted(key)));
        }
        if !pattern.is_valid() {
            findings.error(place, format!("{} is no regular expression (RE2 syntax)", quoted(pattern.text())));
        }
    }
}

fn judge(request: &Request, settings: &RequiredLabels) -> Result<Option<Deny>, InvalidDocument> {
    let is_write = matches!(request.operation(), Some("CREATE" | "UPDATE"));
    let Some(object) = request.object::<Json>()? else { return Ok(None) };
    if !is_write || request.sub_resource().is_some_and(|name| !name.is_empty()) {
        return Ok(None);
    }
    let none = Map::new();
    let labels = object.at(["metadata", "labels"]).and_then(Json::as_object).unwrap_or(&none);
    let causes: Vec<Cause> =
        settings.labels.iter().filter_map(|(key, pattern)| wrong(key, pattern, labels.get(key))).collect();
    let messages: Vec<&str> = causes.iter().map(|cause| cause.message.as_str()).collect();
    Ok((!causes.is_empty()).then(|| deny(messages.join("; ")).causes(causes.clone())))
}

fn wrong(key: &str, pattern: &Pattern, value: Option<&Json>) -> Option<Cause> {
    let field = format!("metadata.labels[{key}]");
    let (key, wanted) = (quoted(key), quoted(pattern.text()));
    let Some(value) = value else {
        let wanted =
            if pattern.text().is_empty() { String::new() } else { format!(" with a value that matches {wanted}") };
        return Some(Cause::new(field, format!("label {key} is required{wanted}")).reason("FieldValueRequired"));
    };
    if value.as_str().is_some_and(|value| pattern.text().is_empty() || pattern.matches(value)) {
        return None;
    }
    Some(Cause::new(field, format!("label {key} is {value} and must match {wanted}")))
}
