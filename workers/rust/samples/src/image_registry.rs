//! `image-registry`: replaces the registry of images, for example by a mirror.
//!
//! An image is written `[REGISTRY[:PORT]/]PATH[:TAG][@DIGEST]`. Short names are Docker's: the first component is a
//! registry only if it has a `.` or a `:` or is `localhost` (github.com/distribution/reference, normalize.go); otherwise it
//! is `docker.io`, where a name of one component lies in `library/`. So `nginx` is `docker.io/library/nginx`, and
//! `user/app` is `docker.io/user/app`. Tag and digest stay as they are.
//!
//! An image that is in the new place already stays, so that a second run changes nothing. So does an image that an UPDATE
//! does not change: rewriting it would restart a running Pod when only a label changes.

use std::sync::LazyLock;

use admission_worker::json::quoted;
use admission_worker::{Allow, Findings, InvalidDocument, Operation, Policy, Request, patch};
use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::pod_specs::{ALL, PodSpecs, claims, places, text};

const DOCKER_HUB: &str = "docker.io";
/// The reference grammar's other name for the same registry.
const OLD_DOCKER_HUB: &str = "index.docker.io";

static PLACE: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"\A[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*\z";
    Regex::new(pattern).expect("it is written above")
});

/// Settings of image-registry.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageRegistry {
    /// A registry such as `docker.io`, or a path in one such as `registry.example.com/team`.
    #[serde(rename = "from")]
    source: String,
    /// The registry, with or without a path, that takes its place.
    #[serde(rename = "to")]
    target: String,
}

/// The policy.
#[must_use]
pub fn policy() -> Policy {
    Policy::mutating("image-registry")
        .description("Rewrites images of one registry to another, in Pods and in the templates of what creates Pods.")
        .inputs(claims(ALL, &["name", "image"]))
        .writes(places(ALL, &["image"]))
        .settings::<ImageRegistry>()
        .check(check)
        .judge(judge)
}

/// Reports invalid registries, and settings that would never rewrite an image.
fn check(settings: &ImageRegistry, findings: &mut Findings) {
    let ImageRegistry { source, target } = settings;
    let mut is_valid = true;
    for (name, place) in [("from", source), ("to", target)] {
        if !PLACE.is_match(place) || !is_registry(first_of(place)) {
            is_valid = false;
            let wanted = "a registry with or without a path, such as docker.io or mirror.example.com/hub";
            findings.error(format!("/{name}"), format!("must be {wanted}, is {}", quoted(place)));
        }
    }
    if first_of(source) == OLD_DOCKER_HUB {
        findings.error("/from", format!("{OLD_DOCKER_HUB} is another name of {DOCKER_HUB}: write {DOCKER_HUB}"));
    }
    if is_valid && rest_of(source, target).is_some() {
        let (source, target) = (quoted(source), quoted(target));
        let message = format!("{source} lies in {target}, where images stay: nothing would ever be rewritten");
        findings.error("/from", message);
    }
}

fn judge(request: &Request, settings: &ImageRegistry) -> Result<Option<Allow>, InvalidDocument> {
    if !matches!(request.operation(), Some("CREATE" | "UPDATE")) {
        return Ok(None);
    }
    let Some(pods) = PodSpecs::of(request)? else { return Ok(None) };
    let mut operations = Vec::new();
    for container in pods.containers(ALL) {
        let image = text(container.value.get("image"));
        let is_new = container.before.is_none_or(|before| before.get("image") != container.value.get("image"));
        if image.is_empty() || !is_new {
            continue;
        }
        if let Some(moved) = rewritten(image, &settings.source, &settings.target) {
            operations.push(Operation::replace(container.pointer(&["image"]), moved));
        }
    }
    Ok(Some(patch(operations)))
}

/// An image, as it is written in a container, in its new place; None: it stays where it is. Neither place ends with a
/// slash.
#[must_use]
pub fn rewritten(image: &str, source: &str, target: &str) -> Option<String> {
    let whole = normalized(image);
    // Also as it is written: an image moved to a target such as docker.io/a is normalized to docker.io/library/a later.
    if rest_of(&whole, target).is_some() || rest_of(image, target).is_some() {
        return None;
    }
    rest_of(&whole, source).map(|rest| format!("{target}{rest}"))
}

/// The image with its registry: `nginx:1` is `docker.io/library/nginx:1`.
#[must_use]
pub fn normalized(image: &str) -> String {
    let (first, path) = match image.split_once('/') {
        Some((first, path)) if is_registry(first) => (first, path),
        _ => (DOCKER_HUB, image),
    };
    let first = if first == OLD_DOCKER_HUB { DOCKER_HUB } else { first };
    let library = if first == DOCKER_HUB && !path.contains('/') { "library/" } else { "" };
    format!("{first}/{library}{path}")
}

fn first_of(place: &str) -> &str {
    place.split('/').next().unwrap_or_default()
}

fn is_registry(component: &str) -> bool {
    component.contains(['.', ':']) || component == "localhost" || component != component.to_lowercase()
}

/// The part of a normalized image after a place: a path, or a repository's tag or digest; None: it lies elsewhere.
fn rest_of<'a>(whole: &'a str, place: &str) -> Option<&'a str> {
    let rest = whole.strip_prefix(place)?;
    // After a registry alone, a colon begins its port.
    let ends: &[char] = if place.contains('/') { &['/', ':', '@'] } else { &['/'] };
    (rest.is_empty() || rest.starts_with(ends)).then_some(rest)
}
