//! PodSpecs, in Pods and in the templates of workloads.
//!
//! [`Container::before`] shows whether an UPDATE changes a container.

use admission_worker::json::Map;
use admission_worker::{InvalidDocument, Json, Request, pointer};

/// The path of the PodSpec in each built-in kind that has one, by group and kind. In the subresources of a Pod that change
/// containers (`ephemeralcontainers`, `resize`) the object is the Pod.
const POD_SPECS: [(&str, &str, &[&str]); 9] = [
    ("", "Pod", &["spec"]),
    ("", "PodTemplate", &["template", "spec"]),
    ("", "ReplicationController", &["spec", "template", "spec"]),
    ("apps", "DaemonSet", &["spec", "template", "spec"]),
    ("apps", "Deployment", &["spec", "template", "spec"]),
    ("apps", "ReplicaSet", &["spec", "template", "spec"]),
    ("apps", "StatefulSet", &["spec", "template", "spec"]),
    ("batch", "Job", &["spec", "template", "spec"]),
    ("batch", "CronJob", &["spec", "jobTemplate", "spec", "template", "spec"]),
];

/// The lists of containers, without ephemeral ones.
pub const RUNNING: &[&str] = &["initContainers", "containers"];
/// All lists of containers.
pub const ALL: &[&str] = &["initContainers", "containers", "ephemeralContainers"];

/// The objects of a request for a kind with a PodSpec.
pub struct PodSpecs {
    path: &'static [&'static str],
    now: Json,
    old: Json,
}

/// One container in an object.
pub struct Container<'a> {
    /// Its place in the object, as tokens: `spec`, `containers`, `0`.
    path: Vec<String>,
    /// The container as it would be stored.
    pub value: &'a Json,
    /// The stored container of that name in the same list, if there is one.
    pub before: Option<&'a Json>,
}

impl PodSpecs {
    /// The PodSpecs of a request's objects; None if its kind has none.
    ///
    /// # Errors
    /// An object that cannot be read.
    pub fn of(request: &Request) -> Result<Option<Self>, InvalidDocument> {
        let Some(kind) = request.kind() else { return Ok(None) };
        let found = POD_SPECS.iter().find(|(group, name, _)| *group == kind.group && *name == kind.kind);
        let Some((_, _, path)) = found else { return Ok(None) };
        let now = request.object()?.unwrap_or_default();
        let old = request.old_object()?.unwrap_or_default();
        Ok(Some(Self { path, now, old }))
    }

    /// The PodSpec of the object, if there is one.
    #[must_use]
    pub fn now(&self) -> Option<&Json> {
        self.now.at(self.path.iter().copied())
    }

    /// The containers of the object in these lists.
    #[must_use]
    pub fn containers(&self, lists: &[&str]) -> Vec<Container<'_>> {
        let old = self.old.at(self.path.iter().copied());
        let mut found = Vec::new();
        for list in lists {
            let before: Vec<&Json> = listed(old, list).map(|(_, container)| container).collect();
            for (index, value) in listed(self.now(), list) {
                // The last one of a name: the API server rejects duplicate names.
                let same = |container: &&&Json| text(container.get("name")) == text(value.get("name"));
                let before = before.iter().rev().find(same).copied();
                let path = self.path.iter().map(|token| (*token).to_owned());
                let path = path.chain([(*list).to_owned(), index.to_string()]).collect();
                found.push(Container { path, value, before });
            }
        }
        found
    }
}

impl Container<'_> {
    /// Its name; `""` without one.
    #[must_use]
    pub fn name(&self) -> &str {
        text(self.value.get("name"))
    }

    /// Its place in Kubernetes' notation: `spec.containers[0]`.
    #[must_use]
    pub fn field(&self) -> String {
        let (index, parents) = self.path.split_last().map_or(("", &[][..]), |(last, rest)| (last.as_str(), rest));
        format!("{}[{index}]", parents.join("."))
    }

    /// Its place, or one below it, as a JSON Pointer over the object.
    #[must_use]
    pub fn pointer(&self, below: &[&str]) -> String {
        pointer(self.path.iter().map(String::as_str).chain(below.iter().copied()))
    }
}

/// The inputs of a policy that reads these members of containers, in the object and the old object.
#[must_use]
pub fn claims(lists: &[&str], members: &[&str]) -> Vec<String> {
    let objects = ["object", "oldObject"];
    objects
        .iter()
        .flat_map(|object| places(lists, members).into_iter().map(move |place| format!("/{object}{place}")))
        .collect()
}

/// The writes of a policy that changes these members of containers.
#[must_use]
pub fn places(lists: &[&str], members: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for path in paths() {
        for list in lists {
            let list = pointer(path.iter().chain([list, &"*"]));
            found.extend(members.iter().map(|member| format!("{list}/{member}")));
        }
    }
    found
}

/// The paths to PodSpecs, each once, in order.
#[must_use]
pub fn paths() -> Vec<&'static [&'static str]> {
    let mut paths: Vec<_> = POD_SPECS.iter().map(|(_, _, path)| *path).collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// The value if it is text, else `""`.
#[must_use]
pub fn text(value: Option<&Json>) -> &str {
    value.and_then(Json::as_str).unwrap_or_default()
}

/// The members of a value, if it is an object.
#[must_use]
pub fn members(value: Option<&Json>) -> Option<&Map> {
    value.and_then(Json::as_object)
}

fn listed<'a>(spec: Option<&'a Json>, list: &str) -> impl Iterator<Item = (usize, &'a Json)> {
    let found = spec.and_then(|spec| spec.get(list)).and_then(Json::as_array).into_iter().flatten();
    found.enumerate().filter(|(_, container)| container.as_object().is_some())
}
