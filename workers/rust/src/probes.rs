//! The probe policies, which `--conformance` adds for the conformance kit (`workers/README.md`). They are not for
//! production.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::spans::current_traceparent;
use crate::{
    Allow, Answer, Cause, Claim, Deny, Details, InvalidDocument, Json, NoSettings, Operation, Policy, Request, allow,
    deny, fail, merge, mutated, patch,
};

/// Tokens of cancelled sleeps that are stored, as `workers/README.md` specifies.
const REMEMBERED: usize = 1000;

/// The longest sleep, a year: tokio's clock cannot represent every sum.
const LONGEST_SLEEP: f64 = 365.0 * 86_400.0;

type Cancelled = Arc<Mutex<VecDeque<String>>>;

pub(crate) fn policies() -> Vec<Policy> {
    let cancelled = Cancelled::default();
    let tokens = Arc::clone(&cancelled);
    vec![
        Policy::mutating("probe-answer")
            .description("Answers with the arm that its settings name.")
            .settings::<AnswerSettings>()
            .judge(answer),
        Policy::validating("probe-misuse")
            .description("Returns a change, which its phase does not allow.")
            .judge(|_, _: &NoSettings| probe_patch()),
        Policy::validating("probe-echo")
            .description("Denies with its document.")
            .inputs(Claim::Everything)
            .judge(|request, _| echo(request)),
        Policy::validating("probe-sleep")
            .description("Waits, and records a cancellation.")
            .inputs(Claim::nothing())
            .settings::<SleepSettings>()
            .judge_async(move |_, settings| sleep(settings, Arc::clone(&cancelled))),
        Policy::validating("probe-cancelled")
            .description("Reports whether a sleep was cancelled.")
            .inputs(Claim::nothing())
            .settings::<TokenSettings>()
            .judge(move |_, settings| was_cancelled(settings, &tokens)),
        Policy::validating("probe-panic")
            .description("Panics.")
            .inputs(Claim::nothing())
            .judge(|_, _| -> Answer { panic!("a secret that must not travel") }),
        Policy::validating("probe-flood")
            .description("Denies with a message of any size.")
            .inputs(Claim::nothing())
            .settings::<FloodSettings>()
            .judge(|_, settings| deny("x".repeat(settings.bytes))),
        Policy::validating("probe-settings")
            .description("Has settings of several types, and a further check.")
            .inputs(Claim::nothing())
            .settings::<OddSettings>()
            .check(|settings, findings| {
                if settings.odd % 2 == 0 {
                    findings.error("/odd", format!("must be odd, is {}", settings.odd));
                }
                if settings.deprecated.is_some() {
                    findings.warning("deprecated goes away");
                }
            })
            .judge(|_, _| ()),
        Policy::mutating("probe-label")
            .description("Adds the label probe if it is missing.")
            .inputs(["/object/metadata/labels"])
            .writes(["/metadata/labels"])
            .judge(|request, _| label(request)),
        Policy::validating("probe-version")
            .description("Has a version of its own.")
            .inputs(Claim::nothing())
            .version("probe-7")
            .judge(|_, _| ()),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Arm {
    Allow,
    Nothing,
    Deny,
    DenyPlainly,
    Patch,
    Merge,
    Mutated,
    Fail,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct AnswerSettings {
    arm: Arm,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    audit_annotations: IndexMap<String, String>,
    /// `no-store`, or seconds.
    #[serde(default)]
    cache: Json,
}

/// An allow or deny, with the warnings, audit annotations and cache hint of the settings.
macro_rules! noted {
    ($answer:expr, $settings:expr) => {{
        let mut answer = $answer.warnings($settings.warnings.clone());
        for (key, value) in &$settings.audit_annotations {
            answer = answer.audit_annotation(key, value);
        }
        match &$settings.cache {
            Json::Number(seconds) => {
                answer.cache_for(Duration::try_from_secs_f64(seconds.as_f64()).unwrap_or(Duration::MAX))
            }
            Json::String(_) => answer.no_store(),
            _ => answer,
        }
    }};
}

fn answer(request: &Request, settings: &AnswerSettings) -> Result<Option<Answer>, InvalidDocument> {
    let allowed = |answer: Allow| -> Answer { noted!(answer, settings).into() };
    let denied = |answer: Deny| -> Answer { noted!(answer, settings).into() };
    Ok(Some(match settings.arm {
        Arm::Nothing => return Ok(None),
        Arm::Allow => allowed(allow()),
        Arm::Deny => denied(denial()),
        Arm::DenyPlainly => denied(deny("denied")),
        Arm::Patch => allowed(probe_patch()),
        Arm::Merge => allowed(merge(json!({"metadata": {"annotations": {"probe": "merged"}}}))),
        Arm::Mutated => {
            let mut object = request.object::<Json>()?.unwrap_or_default();
            let metadata = object.object_mut().entry("metadata".to_owned()).or_default();
            let annotations = metadata.object_mut().entry("annotations".to_owned()).or_default();
            annotations.object_mut().insert("probe".to_owned(), "mutated".into());
            allowed(mutated(object))
        }
        Arm::Fail => fail("failed by the probe").into(),
    }))
}

fn denial() -> Deny {
    let details = Details {
        name: "probe".to_owned(),
        group: "probes.example.com".to_owned(),
        kind: "Probe".to_owned(),
        uid: "probe-uid".to_owned(),
        retry_after_seconds: 7,
    };
    deny("denied by the probe").code(409).cause(Cause::new("spec.probe", "a cause")).details(details)
}

fn probe_patch() -> Allow {
    patch([Operation::add("/metadata/annotations", json!({"probe": "patched"}))])
}

fn echo(request: &Request) -> Deny {
    deny(String::from_utf8_lossy(request.raw()))
        .code(422)
        .audit_annotation("uid", request.uid())
        .audit_annotation("traceparent", current_traceparent())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SleepSettings {
    seconds: f64,
    token: String,
}

/// Stores the token of a cancelled sleep when it is dropped.
struct CancelRecorder {
    token: Option<String>,
    cancelled: Cancelled,
}

impl Drop for CancelRecorder {
    fn drop(&mut self) {
        let Some(token) = self.token.take() else { return };
        let mut cancelled = self.cancelled.lock().unwrap_or_else(PoisonError::into_inner);
        cancelled.push_back(token);
        if cancelled.len() > REMEMBERED {
            cancelled.pop_front();
        }
    }
}

async fn sleep(settings: Arc<SleepSettings>, cancelled: Cancelled) {
    let mut recorder = CancelRecorder { token: Some(settings.token.clone()), cancelled };
    tokio::time::sleep(Duration::from_secs_f64(settings.seconds.clamp(0.0, LONGEST_SLEEP))).await;
    recorder.token = None;
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TokenSettings {
    token: String,
}

fn was_cancelled(settings: &TokenSettings, cancelled: &Cancelled) -> Allow {
    let tokens = cancelled.lock().unwrap_or_else(PoisonError::into_inner);
    allow().audit_annotation("cancelled", tokens.contains(&settings.token).to_string())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FloodSettings {
    bytes: usize,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OddSettings {
    odd: i64,
    #[serde(default)]
    #[allow(dead_code, reason = "only converted")]
    name: Option<String>,
    #[serde(default)]
    deprecated: Option<bool>,
}

fn label(request: &Request) -> Result<Option<Allow>, InvalidDocument> {
    let Some(object) = request.object::<Json>()? else { return Ok(None) };
    let Some(labels) = object.at(["metadata", "labels"]).and_then(Json::as_object) else {
        let (path, value) = match object.get("metadata").and_then(Json::as_object) {
            Some(_) => ("/metadata/labels", json!({"probe": "yes"})),
            None => ("/metadata", json!({"labels": {"probe": "yes"}})),
        };
        return Ok(Some(patch([Operation::add(path, value)])));
    };
    let is_there = labels.contains_key("probe");
    Ok((!is_there).then(|| patch([Operation::add("/metadata/labels/probe", "yes")])))
}
