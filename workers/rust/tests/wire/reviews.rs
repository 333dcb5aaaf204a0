//! One call, one outcome: every arm, over Review and over the stream.

use admission_worker::Limits;
use tonic::Code;

use crate::client::contract::outcome::Verdict;
use crate::client::contract::{FailureReason, Phase, allow::Change, cache_hint::Hint, policy_call::DocumentSource};
use crate::client::{Unreadable, calling, failure, is_plain_allow, mutating, policy_call, validating};
use crate::workers::{Gate, served};

/// All that was registered, in its order.
#[tokio::test]
async fn describe_tells_all_policies() {
    let (_serving, client) = served(&Gate::default(), Limits::default()).await;
    let described = client.describe().await;
    assert_eq!((described.worker.as_str(), described.version.as_str()), ("tests", "7"));
    let deny = described.policies.iter().find(|policy| policy.name == "deny").unwrap();
    assert_eq!((deny.version.as_str(), deny.phases.as_slice()), ("3", &[Phase::Validating as i32][..]));
    assert!(deny.inputs.is_none() && deny.writes.is_none());
    assert!(String::from_utf8_lossy(&deny.settings_schema).contains("draft/2020-12"));
}

/// A denial brings all of its parts, and its policy's version.
#[tokio::test]
async fn a_denial_travels_whole() {
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

/// Each of the three changes as the author gave it; an answer without a change that changes something is a plain allow.
#[tokio::test]
async fn changes_travel_as_they_were_given() {
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

/// An object that nobody touched comes back byte for byte, whatever its numbers.
#[tokio::test]
async fn an_object_keeps_its_numbers() {
    let (_serving, client) = served(&Gate::default(), Limits::default()).await;
    let object = r#"{"z":1.0,"b":9007199254740993,"c":1e400,"d":1.10,"e":-0,"a":[1E+2,"\u00e4"]}"#;
    let called = policy_call("mutated", Phase::Mutating, "{}", &format!(r#"{{"object":{object}}}"#));
    let Some(Verdict::Allow(allowed)) = client.review(called).await.verdict else { panic!() };
    assert_eq!(allowed.change, Some(Change::Object(object.replace(r"\u00e4", "ä").into())));
}

/// Whatever goes wrong in a policy is a failure that names it and a type; the text stays in the log.
#[tokio::test]
async fn what_goes_wrong_in_a_policy_is_a_failure() {
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
    assert!(is_plain_allow(&client.review(validating("allow", "{}")).await), "the worker goes on");
}

/// A document that is missing or cannot be read, a wrong type in the policy, and what holds a value is never told.
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
    let called = policy_call("misread", Phase::Validating, "{}", r#"{"object":"secret"}"#);
    let message = failure(&client.review(called).await);
    assert!(message.starts_with("policy misread failed with InvalidDocument: the document's object"), "{message}");
    assert!(!message.contains("secret"));
}

/// The document reaches the policy byte for byte; the uid beside it.
#[tokio::test]
async fn a_document_reaches_the_policy_as_it_came() {
    let (_serving, client) = served(&Gate::default(), Limits::default()).await;
    let document = "{ \"a\" : 1.00,\n\"a\":2, \"ö\":\"\\u00e4\"}";
    let outcome = client.review(policy_call("echo", Phase::Validating, "{}", document)).await;
    assert_eq!(outcome.audit_annotations["uid"], "uid-of-the-test");
    let Some(Verdict::Deny(denied)) = outcome.verdict else { panic!() };
    assert_eq!(denied.message, document);
}

/// A policy that is not held, or not for this phase, and settings that cannot be used, have reasons for machines.
#[tokio::test]
async fn failures_have_reasons() {
    let (_serving, client) = served(&Gate::default(), Limits::default()).await;
    for (called, reason) in [
        (validating("none", "{}"), FailureReason::UnknownPolicy),
        (mutating("allow", "{}"), FailureReason::UnknownPolicy),
        (validating("allow", r#"{"unknown":1}"#), FailureReason::InvalidSettings),
        (validating("allow", ""), FailureReason::InvalidSettings),
    ] {
        let Some(Verdict::Failure(failed)) = client.review(called).await.verdict else { panic!() };
        assert_eq!(failed.reason, reason as i32, "{}", failed.message);
    }
}

/// An answer that is larger than a message is a failure that names its size and the limit.
#[tokio::test]
async fn an_answer_that_fits_no_message_is_a_failure() {
    let mut limits = Limits::default();
    limits.message_bytes = 50_000;
    let (_serving, client) = served(&Gate::default(), limits).await;
    let message = failure(&client.review(validating("flood", "{}")).await);
    assert!(message.contains("the answer has 1000") && message.contains("at most 49936 fit a message"), "{message}");
}

/// A message that cannot be read, or is too large, is its call's affair.
#[tokio::test]
async fn unreadable_messages_end_their_call() {
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

/// The stream gives the outcomes that Review gives.
#[tokio::test]
async fn the_stream_gives_equal_outcomes() {
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
