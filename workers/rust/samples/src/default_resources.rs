//! `default-resources`: adds the operator's requests and limits to containers and init containers that lack them.
//!
//! "If a limit is specified, but no request, ... the request defaults to the limit", and "a request must be less than or
//! equal to the limit" (Kubernetes). So a default that would make a request exceed a limit is not set, and the user gets a
//! warning. Containers whose resources an UPDATE does not change stay as they are (those of Pods and Jobs are immutable),
//! and so do Pods with resources of their own (`spec.resources`), which their containers share.

use admission_worker::json::Map;
use admission_worker::{Allow, Findings, InvalidDocument, Json, Operation, Policy, Request, patch, pointer};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::pod_specs::{Container, PodSpecs, RUNNING, claims, members, paths, places};
use crate::quantities::{quantity, written};

/// Resources whose request may be below the limit. Not huge pages and extended ones: "you cannot overcommit".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Resource {
    Cpu,
    Memory,
    EphemeralStorage,
}

impl Resource {
    fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::EphemeralStorage => "ephemeral-storage",
        }
    }
}

/// A quantity as an operator writes it: a text or a number.
#[derive(JsonSchema)]
#[schemars(extend("type" = ["string", "number"]), with = "Json", inline)]
struct Written(Json);

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let value = Json::deserialize(source)?;
        match value {
            Json::String(_) | Json::Number(_) => Ok(Self(value)),
            other => Err(serde::de::Error::custom(format!("must be string or number, is {}", other.kind()))),
        }
    }
}

type Defaults = IndexMap<Resource, Written>;

/// Settings of default-resources.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DefaultResources {
    /// The default request of each resource, such as `{"cpu": "100m", "memory": "128Mi"}`.
    #[serde(default)]
    requests: Defaults,
    /// The default limit of each resource; none below its default request.
    #[serde(default)]
    limits: Defaults,
}

/// The policy.
#[must_use]
pub fn policy() -> Policy {
    let mut inputs = claims(RUNNING, &["name", "resources"]);
    inputs.extend(paths().iter().map(|path| format!("/object{}/resources", pointer(*path))));
    Policy::mutating("default-resources")
        .description("Adds requests and limits that containers lack.")
        .inputs(inputs)
        .writes(places(RUNNING, &["resources"]))
        .settings::<DefaultResources>()
        .check(check)
        .judge(judge)
}

/// Reports values that are no quantity, are negative, or contradict the other default.
fn check(settings: &DefaultResources, findings: &mut Findings) {
    for (kind, defaults) in [("requests", &settings.requests), ("limits", &settings.limits)] {
        for (name, default) in defaults {
            match quantity(&default.0) {
                Err(message) => findings.error(pointer([kind, name.name()]), message),
                Ok(value) if value < 0 => {
                    let message = format!("must not be negative, is {}", written(&default.0));
                    findings.error(pointer([kind, name.name()]), message);
                }
                Ok(_) => {}
            }
        }
    }
    for (name, request) in &settings.requests {
        let Some(limit) = settings.limits.get(name) else { continue };
        let (Ok(least), Ok(most)) = (quantity(&request.0), quantity(&limit.0)) else { continue };
        if least > most {
            let (request, limit) = (written(&request.0), written(&limit.0));
            let message = format!("the default request {request} exceeds the default limit {limit}");
            findings.error(pointer(["requests", name.name()]), message);
        }
    }
}

fn judge(request: &Request, settings: &DefaultResources) -> Result<Option<Allow>, InvalidDocument> {
    if !matches!(request.operation(), Some("CREATE" | "UPDATE")) {
        return Ok(None);
    }
    let Some(pods) = PodSpecs::of(request)? else { return Ok(None) };
    if pods.now().and_then(|spec| spec.get("resources")).is_some_and(holds_something) {
        return Ok(None);
    }
    let (mut operations, mut warnings) = (Vec::new(), Vec::new());
    for container in pods.containers(RUNNING) {
        let now = container.value.get("resources");
        let empty = Json::Object(Map::new());
        let or_empty = |resources: Option<&'_ Json>| {
            resources.filter(|held| holds_something(held)).cloned().unwrap_or(empty.clone())
        };
        if container.before.is_some_and(|before| or_empty(before.get("resources")) == or_empty(now)) {
            continue;
        }
        let added = missing(&container, members(now), settings, &mut warnings);
        add(&container, members(now), added, &mut operations);
    }
    Ok(Some(patch(operations).warnings(warnings)))
}

/// The defaults that the container lacks, `requests` and `limits`, in order. A default that contradicts its other value
/// becomes a warning.
fn missing(
    container: &Container<'_>,
    resources: Option<&Map>,
    settings: &DefaultResources,
    warnings: &mut Vec<String>,
) -> [(&'static str, Map); 2] {
    let held = |kind: &str| members(resources.and_then(|resources| resources.get(kind)));
    let (requests, limits) = (held("requests"), held("limits"));
    let (mut new_requests, mut new_limits) = (Map::new(), Map::new());
    let mut warn = |text: String| warnings.push(format!("{}: {text}: not set", container.field()));
    for (name, default) in &settings.requests {
        let (name, default) = (name.name(), &default.0);
        let limit = limits.and_then(|limits| limits.get(name));
        if requests.is_some_and(|requests| requests.contains_key(name)) {
            continue;
        }
        if fits(default, limit.unwrap_or(default)) {
            new_requests.insert(name.to_owned(), Json::String(written(default)));
        } else if let Some(limit) = limit {
            warn(format!("default {name} request {} exceeds its limit {}", written(default), written(limit)));
        }
    }
    for (name, default) in &settings.limits {
        let (name, default) = (name.name(), &default.0);
        let request = requests.and_then(|requests| requests.get(name));
        if limits.is_some_and(|limits| limits.contains_key(name)) {
            continue;
        }
        if fits(request.unwrap_or(default), default) {
            new_limits.insert(name.to_owned(), Json::String(written(default)));
        } else if let Some(request) = request {
            warn(format!("default {name} limit {} is below its request {}", written(default), written(request)));
        }
    }
    [("requests", new_requests), ("limits", new_limits)]
}

/// The JSON Patch that adds them, with missing parent objects.
fn add(container: &Container<'_>, now: Option<&Map>, added: [(&str, Map); 2], operations: &mut Vec<Operation<Json>>) {
    let wanted = added.into_iter().filter(|(_, values)| !values.is_empty());
    let Some(now) = now else {
        let whole: Map = wanted.map(|(kind, values)| (kind.to_owned(), Json::Object(values))).collect();
        if !whole.is_empty() {
            operations.push(Operation::add(container.pointer(&["resources"]), Json::Object(whole)));
        }
        return;
    };
    for (kind, values) in wanted {
        if members(now.get(kind)).is_none() {
            operations.push(Operation::add(container.pointer(&["resources", kind]), Json::Object(values)));
            continue;
        }
        for (name, value) in values {
            operations.push(Operation::add(container.pointer(&["resources", kind, &name]), value));
        }
    }
}

/// Whether a request does not exceed a limit. False for an invalid quantity, which the API server rejects.
fn fits(request: &Json, limit: &Json) -> bool {
    matches!((quantity(request), quantity(limit)), (Ok(request), Ok(limit)) if request <= limit)
}

/// Whether a value is not empty.
fn holds_something(value: &Json) -> bool {
    match value {
        Json::Null => false,
        Json::Bool(value) => *value,
        Json::Number(number) => number.as_f64() != 0.0,
        Json::String(text) => !text.is_empty(),
        Json::Array(elements) => !elements.is_empty(),
        Json::Object(members) => !members.is_empty(),
    }
}
