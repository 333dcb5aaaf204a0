//! `sidecar`: adds a container to each new Pod, once.
//!
//! A container with `restartPolicy: Always` is a sidecar as Kubernetes defines it, and is appended to the init containers;
//! any other to the containers. Only on CREATE, since a Pod's containers are immutable. It is not added:
//!
//! * where a container of that name exists, so that a second run changes nothing (names are unique over all of a Pod's
//!   containers; if an ordinary init container has the name, the user gets a warning);
//! * to mirror Pods, which the kubelet makes from files: the API server cannot change what they run;
//! * where the Pod's annotation says `false`.

use admission_worker::json::quoted;
use admission_worker::{Allow, Findings, InvalidDocument, Json, Operation, Policy, Request, allow, patch};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::pod_specs::{members, text};

const MIRROR: &str = "kubernetes.io/config.mirror";

/// Settings of sidecar.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sidecar {
    /// A v1 Container; what it mounts must exist in the Pods.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    #[serde(deserialize_with = "object")]
    container: Json,
    /// The key of a Pod's annotation which, with the value `false`, keeps the sidecar out.
    #[serde(default = "annotation")]
    annotation: String,
}

fn annotation() -> String {
    "sidecar.admission-gateway.dev/inject".to_owned()
}

fn object<'de, D: serde::Deserializer<'de>>(source: D) -> Result<Json, D::Error> {
    let value = Json::deserialize(source)?;
    let is_object = value.as_object().is_some();
    if is_object { Ok(value) } else { Err(serde::de::Error::custom(format!("must be object, is {}", value.kind()))) }
}

/// The policy.
#[must_use]
pub fn policy() -> Policy {
    Policy::mutating("sidecar")
        .description("Adds a container to each Pod that is created.")
        .inputs([
            "/object/metadata/annotations",
            "/object/spec/containers/*/name",
            "/object/spec/initContainers/*/name",
            "/object/spec/initContainers/*/restartPolicy",
        ])
        .writes(["/spec/containers", "/spec/initContainers"])
        .settings::<Sidecar>()
        .check(check)
        .judge(judge)
}

/// Reports missing fields that every container needs, and a wrong restartPolicy.
fn check(settings: &Sidecar, findings: &mut Findings) {
    for name in ["name", "image"] {
        if text(settings.container.get(name)).is_empty() {
            findings.error(format!("/container/{name}"), "Required value: a text that is not empty");
        }
    }
    if settings.container.get("restartPolicy").is_some_and(|policy| policy.as_str() != Some("Always")) {
        findings.error("/container/restartPolicy", "must be Always (a sidecar that init containers can use) or absent");
    }
}

fn judge(request: &Request, settings: &Sidecar) -> Result<Option<Allow>, InvalidDocument> {
    let is_pod = request.kind().is_some_and(|kind| kind.group.is_empty() && kind.kind == "Pod");
    let has_sub_resource = request.sub_resource().is_some_and(|name| !name.is_empty());
    if request.operation() != Some("CREATE") || has_sub_resource || !is_pod {
        return Ok(None);
    }
    let Some(pod) = request.object::<Json>()?.filter(|pod| !is_kept_out(pod, settings)) else { return Ok(None) };
    let name = text(settings.container.get("name"));
    if named(&pod, "containers", name).is_some() {
        return Ok(None);
    }
    if let Some(same) = named(&pod, "initContainers", name) {
        let is_sidecar = text(same.get("restartPolicy")) == "Always";
        let warning = format!("sidecar {} is not added: an init container has its name", quoted(name));
        return Ok((!is_sidecar).then(|| allow().warning(warning)));
    }
    let is_restarted = settings.container.get("restartPolicy").is_some();
    let place = if is_restarted { "initContainers" } else { "containers" };
    let is_listed = pod.at(["spec", place]).is_some_and(|list| list.as_array().is_some());
    Ok(Some(if is_listed {
        patch([Operation::add(format!("/spec/{place}/-"), &settings.container)])
    } else {
        patch([Operation::add(format!("/spec/{place}"), [&settings.container])])
    }))
}

fn is_kept_out(pod: &Json, settings: &Sidecar) -> bool {
    members(pod.at(["metadata", "annotations"])).is_some_and(|annotations| {
        annotations.contains_key(MIRROR) || text(annotations.get(&settings.annotation)) == "false"
    })
}

fn named<'a>(pod: &'a Json, place: &str, name: &str) -> Option<&'a Json> {
    let list = pod.at(["spec", place]).and_then(Json::as_array);
    list.into_iter().flatten().find(|container| container.get("name").and_then(Json::as_str) == Some(name))
}
