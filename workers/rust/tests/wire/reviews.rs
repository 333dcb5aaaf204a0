//! One call, one outcome: every form of answer, over Review and over the stream.

use admission_worker::Limits;
use tonic::Code;

use crate::client::contract::outcome::Verdict;
use crate::client::contract::{FailureReason, Phase, allow::Change, cache_hint::Hint, policy_call::DocumentSource};
use crate::client::{Unreadable, calling, failure, is_plain_allow, mutating, policy_call, validating};
use crate::workers::{Gate, served};

/// Describe returns all registered policies, in their order.
#[tokio::test]
async fn describe_returns_all_policies() {
    let (_serving, client) = served(&Gate::default(), Limits::default()).await;
    let described = client.describe().await;
    assert_eq!((described.worker.as_str(), described.version.as_str()), ("tests", "7"));
    let deny = described.policies.iter().find(|policy| policy.name == "deny").unwrap();
    assert_eq!((deny.version.as_str(), deny.phases.as_slice()), ("3", &[Phase::Validating as i32][..]));
    assert!(deny.inputs.is_none() && deny.writes.is_none());
    assert!(String::from_utf8_lossy(&deny.settings_schema).contains("draft/2020-12"));
}

/// A denial is sent with all of its parts, and its policy's version.
#[tokio::test]
async fn a_denial_is_sent_whole() {
    let (_serving, client) = served(&Gate::default(), Limits::default()).await;
    let outcome = client.review(validating("deny", "{}")).await;
    assert_eq!(outcome.version, "3");
    assert_eq!(outcome.warnings, ["a warning"]);
    assert_eq!(outcome.audit_annotations["checked"], "yes");
    assert!(matches!(outcome.cache.unwrap().hint, Some(Hint::NoStore(_))));
    let Some(Verdict::Deny(denied)) = outcome.verdict else { panic!("no denial") };
    assert_eq!((denied.code, denied.message.as_str(), denied.reason.as_str()), (Some(422), "no", "Invalid"));
    let details = denied.details.unwrap();
    assert_eq!((details.name.as_str(), details.retry_after_seconds), ("n", 7));
    assert_eq!(details.causes[0].field, "spec.x");
    assert_eq!(details.causes[0].reason, "FieldValueInvalid");
}

/// Each of the three changes is sent as the author returned it; an empty change is a plain allow.
#[tokio::test]
async fn changes_are_sent_unchanged() {
    let (_serving, client) = served(&Gate::default(), Limits::default()).await;
    let mut changes = Vec::new();
    for policy in ["patch", "merge", "nothing"] {
        let Some(Verdict::Allow(allowed)) = client.review(mutating(policy, "{}")).await.verdict else { panic!() };
        changes.push(allowed.change);
    }
    let operations = r#"[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]"#;
    let merged = r#"{"metadata":{"labels":{"a":"b"}}}"#;
    assert_eq!(changes, [Some(Change::JsonPatch(operations.into())), Some(Change::MergePatch(merged.into())), None]);
}

/// An object that the policy does not change is returned byte for byte, whatever its numbers.
#[tokio::test]
async fn an_object_keeps_its_numbers() {
    let (_serving, client) = served(&Gate::default(), Limits::default()).await;
    let object = r#"{"z":1.0,"b":9007199254740993,"c":1e400,"d":1.10,"e":-0,"a":[1E+2,"\u00e4"]}"#;
    let call = policy_call("mutated", Phase::Mutating, "{}", &format!(r#"{{"object":{object}}}"#));
    let Some(Verdict::Allow(allowed)) = client.review(call).await.verdict else { panic!() };
    assert_eq!(allowed.change, Some(Change::Object(object.replace(r"\u00e4", "ä").into())));
}

/// An error in a policy is a failure that names the policy and the error's type; the text stays in the log.
#[tokio::test]
async fn an_error_in_a_policy_is_a_failure() {
    let (_serving, client) = served(&Gate::default(), Limits::default()).await;
    for (policy, part) in [
        ("panic", "policy panic failed with panic: see the worker's log"),
        ("panic-later", "policy panic-later failed with panic: see the worker's log"),
        ("error", "policy error failed with core::num::error::ParseIntError: see the worker's log"),
        ("change", "policy change: InvalidAnswer: returned a change (patch)"),
        ("bad-key", "policy bad-key: InvalidAnswer: audit_annotation: the key \"no spaces\" must be"),
        ("fail", "the inventory cannot be reached"),
    ] {
        let outcome = client.review(validating(policy, "{}")).await;
        assert!(failure(&outcome).starts_with(part), "{outcome:?}");
        assert_eq!(outcome.version, "7");
    }
    assert!(is_plain_allow(&client.review(validating("allow", "{}")).await), "the worker continues");
}

/// A missing or invalid document, or a wrong type in the policy, is a failure that quotes no value.
#[tokio::test]
async fn a_document_that_cannot_be_read_is_a_failure() {
    let (_serving, client) = served(&Gate::default(), Limits::default()).await;
    let mut without = validating("allow", "{}");
    without.document_source = Some(DocumentSource::DocumentIndex(0));
    assert_eq!(failure(&client.review(without).await), "policy allow was called without a document");
    for document in ["", "[]", "{", r#"{"name":5}"#, "{}{}", "\"secret\""] {
        let message = failure(&client.review(policy_call("allow", Phase::Validating, "{}", document)).await);
        assert!(message.starts_with("policy allow: the document") && !message.contains("secret"), "{message}");
    }
    let call = policy_call("misread", Phase::Validating, "{}", r#"{"object":"secret"}"#);
    let message = failure(&client.review(call).await);
    assert!(message.starts_with("policy misread failed with InvalidDocument: the document's object"), "{message}");
    assert!(!message.contains("secret"));
}

/// The policy receives the document byte for byte, and the uid.
#[tokio::test]
async fn a_policy_receives_the_document_unchanged() {
    let (_serving, client) = served(&Gate::default(), Limits::default()).await;
    let document = "{ \"a\" : 1.00,\n\"a\":2, \"ö\":\"\\u00e4\"}";
    let outcome = client.review(policy_call("echo", Phase::Validating, "{}", document)).await;
    assert_eq!(outcome.audit_annotations["uid"], "uid-of-the-test");
    let Some(Verdict::Deny(denied)) = outcome.verdict else { panic!() };
    assert_eq!(denied.message, document);
}

/// An unknown policy, a wrong phase and invalid settings have reasons for machines.
#[tokio::test]
async fn failures_have_reasons() {
    let (_serving, client) = served(&Gate::default(), Limits::default()).await;
    for (call, reason) in [
        (validating("none", "{}"), FailureReason::UnknownPolicy),
        (mutating("allow", "{}"), FailureReason::UnknownPolicy),
        (validating("allow", r#"{"unknown":1}"#), FailureReason::InvalidSettings),
        (validating("allow", ""), FailureReason::InvalidSettings),
    ] {
        let Some(Verdict::Failure(failed)) = client.review(call).await.verdict else { panic!() };
        assert_eq!(failed.reason, reason as i32, "{}", failed.message);
    }
}

/// An answer larger than a message is a failure that names its size and the limit.
#[tokio::test]
async fn an_answer_larger_than_a_message_is_a_failure() {
    let mut limits = Limits::default();
    limits.message_bytes = 50_000;
    let (_serving, client) = served(&Gate::default(), limits).await;
    let message = failure(&client.review(validating("flood", "{}")).await);
    assert!(message.contains("the answer has 1000") && message.contains("at most 49936 fit a message"), "{message}");
}

/// An undecodable or too large message ends only its own call.
#[tokio::test]
async fn undecodable_messages_end_their_call() {
    let mut limits = Limits::default();
    limits.message_bytes = 50_000;
    let (_serving, client) = served(&Gate::default(), limits).await;
    let unreadable = tonic::Request::new(Unreadable { number_where_a_message_is: 7 });
    let path = "/admission.worker.v1.Worker/Review";
    let answer = client.unary::<_, Unreadable>(path, unreadable).await;
    assert_eq!(answer.unwrap_err().code(), Code::InvalidArgument);
    let large = policy_call("allow", Phase::Validating, "{}", &format!("{{\"a\":\"{}\"}}", "x".repeat(60_000)));
    let request = tonic::Request::new(crate::client::contract::ReviewRequest { call: Some(large) });
    assert_eq!(client.try_review(request).await.unwrap_err().code(), Code::ResourceExhausted);
    assert!(is_plain_allow(&client.review(validating("allow", "{}")).await));
}

/// The stream returns the same outcomes as Review.
#[tokio::test]
async fn the_stream_returns_equal_outcomes() {
    let (_serving, client) = served(&Gate::default(), Limits::default()).await;
    let names = client.describe().await.policies.into_iter().filter(|policy| policy.name != "wait");
    let calls: Vec<_> = names
        .map(|policy| {
            let is_mutating = policy.phases == [Phase::Mutating as i32];
            if is_mutating { mutating(&policy.name, "{}") } else { validating(&policy.name, "{}") }
        })
        .collect();
    let mut stream = client.stream().await;
    stream.send(&[], calls.iter().cloned().zip(0..).map(|(call, id)| calling(id, call)).collect()).await;
    let mut outcomes = std::collections::BTreeMap::new();
    for _ in &calls {
        let (id, outcome) = stream.next().await.unwrap();
        assert!(outcomes.insert(id, outcome).is_none(), "each is answered once");
    }
    for (call, (_, outcome)) in calls.into_iter().zip(outcomes) {
        assert_eq!(outcome, client.review(call).await);
    }
}
