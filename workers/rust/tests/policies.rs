//! The API without a server: registration, settings, answers, requests, and the testing helper.

#![allow(missing_docs, reason = "tests")]

use std::time::Duration;

use admission_worker::testing::{ReviewError, review, review_async};
use admission_worker::{
    Answer, Cause, Claim, Json, NoSettings, Operation, Policy, Request, Worker, allow, deny, fail, merge, mutated,
    patch, pointer,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

fn nothing(_: &Request, _: &NoSettings) {}

fn registration_error(policy: Policy) -> String {
    Worker::new("w", "1").policy(policy).check().map_or_else(|error| error.to_string(), |()| String::new())
}

// ---------------------------------------------------------------------------------------- registration

/// Names are DNS-1123 labels.
#[test]
fn a_name_must_be_a_label() {
    let longest = "a".repeat(63);
    for name in ["a", "a-b", "0", longest.as_str()] {
        assert_eq!(registration_error(Policy::validating(name).judge(nothing)), "");
    }
    for name in ["", "A", "a_b", "-a", "a-", "a.b", &"a".repeat(64)] {
        assert!(
            registration_error(Policy::validating(name).judge(nothing)).contains("must be a DNS-1123 label"),
            "{name}"
        );
    }
}

/// Claims are pointers to existing places; each error names the claim.
#[test]
fn claims_must_be_places() {
    for (place, part) in [
        ("", "\"\" is no place; everything is spelt Claim::Everything"),
        ("object", "is no JSON Pointer"),
        ("/object/~2", "is no JSON Pointer"),
        ("/uid", "no verdict may depend on"),
        ("/objects", "is no place in an AdmissionRequest"),
    ] {
        let found = registration_error(Policy::validating("p").inputs([place]).judge(nothing));
        assert!(found.starts_with("policy p: inputs: ") && found.contains(part), "{found}");
    }
    for place in ["/kind", "/apiVersion", "/*"] {
        let found = registration_error(Policy::mutating("p").writes([place]).judge(nothing));
        assert!(found.contains("is or holds the object's kind"), "{found}");
    }
    let many: Vec<String> = (0..257).map(|index| format!("/object/{index}")).collect();
    assert!(registration_error(Policy::validating("p").inputs(many).judge(nothing)).contains("at most 256 pointers"));
}

/// A validating policy writes nothing, a name is unique, a version is required; all errors are reported at once.
#[test]
fn all_errors_are_reported_at_once() {
    let worker = Worker::new("w", "")
        .policy(Policy::validating("p").writes(Claim::Everything).judge(nothing))
        .policy(Policy::mutating("p").judge(nothing));
    assert_eq!(
        worker.check().unwrap_err().0,
        [
            "worker \"w\": a version is required, such as \"1.0.0\"; verdicts are cached by it",
            "policy p: writes: a validating policy changes nothing; leave them out",
            "worker w: a policy \"p\" is registered already",
        ]
    );
}

/// Settings are a JSON object.
#[test]
fn settings_must_be_an_object() {
    let found = registration_error(Policy::validating("p").settings::<Vec<String>>().judge(|_, _| ()));
    assert!(found.contains("settings: must be a type that is a JSON object"), "{found}");
}

// ------------------------------------------------------------------------------------------- settings

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[allow(dead_code, reason = "only converted")]
struct Many {
    team: String,
    count: u8,
    #[serde(default)]
    mode: Option<Mode>,
    #[serde(default)]
    parts: Vec<Part>,
    #[serde(default)]
    others: std::collections::BTreeMap<String, bool>,
    #[serde(default)]
    any_json: Json,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code, reason = "only converted")]
enum Mode {
    Front,
    Back,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code, reason = "only converted")]
struct Part {
    name: String,
}

fn with_settings() -> Worker {
    let policy = Policy::validating("p")
        .settings::<Many>()
        .check(|settings, findings| {
            if settings.team == "x" {
                findings.error("/team", "must not be x");
                findings.error("", "and not at all");
            }
            assert_ne!(settings.team, "panic", "a secret");
        })
        .judge(|_, settings| deny(settings.any_json.to_string()));
    Worker::new("w", "1").policy(policy)
}

fn errors(settings: serde_json::Value) -> Vec<(String, String)> {
    match review(&with_settings(), "p", json!({}), settings) {
        Err(ReviewError::InvalidSettings(invalid)) => {
            invalid.0.into_iter().map(|error| (error.pointer, error.message)).collect()
        }
        other => panic!("{other:?}"),
    }
}

/// All errors are reported at once, each at its place.
#[test]
fn all_errors_in_settings_have_their_places() {
    let settings = json!({
        "count": 300, "mode": "side", "parts": [{"name": "a"}, {"name": 5}, 7, {}], "others": {"a/b": 1}, "odd": 1,
    });
    let found = errors(settings);
    let mut places: Vec<&str> = found.iter().map(|(place, _)| place.as_str()).collect();
    places.sort_unstable();
    assert_eq!(
        places,
        ["/count", "/mode", "/odd", "/others/a~1b", "/parts/1/name", "/parts/2", "/parts/3/name", "/team"]
    );
    let message = |place: &str| found.iter().find(|(found, _)| found == place).map(|(_, message)| message.as_str());
    assert_eq!(message("/team"), Some("Required value"));
    assert_eq!(message("/parts/1/name"), Some("must be string, is 5"));
    assert_eq!(message("/count"), Some("must be at most 255, is 300"));
    assert!(message("/odd").unwrap().starts_with("Unknown member; known are: "));
}

/// The author's own check reports errors; a check that panics is an error without the panic's text.
#[test]
fn the_authors_check_is_called() {
    let found = errors(json!({"team": "x", "count": 1}));
    let wanted = [("/team", "must not be x"), ("", "and not at all")];
    assert_eq!(found, wanted.map(|(place, message)| (place.to_owned(), message.to_owned())));
    let found = errors(json!({"team": "panic", "count": 1}));
    assert!(found[0].1.contains("could not be checked") && !found[0].1.contains("secret"));
}

/// `Json` in settings keeps numbers and order.
#[test]
fn json_in_settings_keeps_its_text() {
    let settings: Json = r#"{"team":"a","count":1,"anyJson":{"z":1.50,"a":[1e400,{}]}}"#.parse().unwrap();
    let answer = review(&with_settings(), "p", json!({}), settings).unwrap();
    assert_eq!(answer, deny(r#"{"z":1.50,"a":[1e400,{}]}"#).into());
}

// -------------------------------------------------------------------------------------------- answers

fn answer_of(answer: impl Into<Answer>) -> Result<Answer, String> {
    let answer = answer.into();
    let worker = Worker::new("w", "1").policy(Policy::mutating("p").judge(move |_, _| answer.clone()));
    match review(&worker, "p", json!({}), json!({})) {
        Ok(answer) => Ok(answer),
        Err(ReviewError::InvalidAnswer(wrong)) => Err(wrong),
        Err(other) => panic!("{other}"),
    }
}

/// An invalid answer is an error that names the call that made it.
#[test]
fn invalid_answers_are_errors() {
    let day = Duration::from_secs(86_400);
    for (answer, part) in [
        (patch(json!({})), "patch: must be a list of operations"),
        (patch(json!([{"op": "increment", "path": "/a"}])), "patch[0].op: must be one of add, remove"),
        (patch(json!([{"op": "remove", "path": "/a"}, {"op": "add", "path": "/a"}])), "patch[1]: add needs value"),
        (patch(json!([{"op": "move", "path": "/a"}])), "patch[0]: move needs from"),
        (patch(json!([{"op": "remove", "path": "a"}])), "patch[0].path: must be a JSON Pointer"),
        (merge(json!([])), "merge: must be a JSON object"),
        (mutated(json!(5)), "mutated: must be a JSON object"),
        (allow().audit_annotation("a b", "x"), "audit_annotation: the key \"a b\" must be 1 to 63"),
        (allow().audit_annotation("", "x"), "audit_annotation: the key \"\" must be"),
        (allow().cache_for(40_000 * day), "cache_for: must be from 0 to 36500 days"),
    ] {
        let wrong = answer_of(answer).unwrap_err();
        assert!(wrong.starts_with(part), "{wrong}");
    }
    assert!(answer_of(deny("no").audit_annotation("ä", "x")).is_err());
    assert!(answer_of(allow().audit_annotation("a".repeat(63), "x").no_store()).is_ok());
    assert!(answer_of(fail("it is broken")).is_ok());
}

/// Options, results and units convert into answers.
#[test]
fn many_things_become_an_answer() {
    let judged = |policy: Policy| review(&Worker::new("w", "1").policy(policy), "p", json!({}), json!({}));
    let p = || Policy::validating("p");
    assert_eq!(judged(p().judge(|_, _| ())).unwrap(), allow().into());
    assert_eq!(judged(p().judge(|_, _| Some(deny("no")))).unwrap(), deny("no").into());
    assert_eq!(judged(p().judge(|_, _| Ok::<_, std::fmt::Error>(fail("x")))).unwrap(), fail("x").into());
    assert_eq!(judged(p().judge_async(|_, _| async { None::<Answer> })).unwrap(), allow().into());
    let error = judged(p().judge(|_, _| Err::<(), _>(std::fmt::Error))).unwrap_err();
    assert_eq!(error.to_string(), "core::fmt::Error: an error occurred when formatting an argument");
}

// ---------------------------------------------------------------------------------- requests and testing

#[derive(Deserialize)]
struct Labelled {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    labels: std::collections::BTreeMap<String, String>,
}

/// Members in their types; what is absent or null is None; objects in the author's own type.
#[test]
fn a_request_is_typed() {
    let policy = Policy::validating("p").judge(|request, _| -> Result<(), Box<dyn std::error::Error>> {
        assert_eq!(request.operation(), Some("UPDATE"));
        assert_eq!(request.kind().unwrap().kind, "Pod");
        assert_eq!((request.name(), request.namespace(), request.sub_resource()), (Some("n"), None, None));
        assert_eq!(request.user_info().unwrap().groups.as_deref().unwrap(), ["g"]);
        assert_eq!(request.user_info().unwrap().extra.as_ref().unwrap()["k"], ["v"]);
        assert_eq!(request.dry_run(), Some(false));
        assert_eq!(request.uid(), "u");
        assert_eq!(request.object::<Labelled>()?.unwrap().metadata.labels["team"], "a");
        assert!(request.old_object::<Json>()?.is_none());
        assert_eq!(request.member::<String>("unknown")?.as_deref(), Some("x"));
        Ok(())
    });
    let request = json!({
        "uid": "u", "operation": "UPDATE", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "name": "n",
        "userInfo": {"username": "me", "groups": ["g"], "extra": {"k": ["v"]}}, "dryRun": false,
        "object": {"metadata": {"labels": {"team": "a"}}}, "oldObject": null, "unknown": "x",
    });
    review(&Worker::new("w", "1").policy(policy), "p", request, json!({})).unwrap();
}

/// A policy receives its claims and the members of every document; unclaimed elements keep their index.
#[test]
fn a_policy_receives_what_it_claims() {
    let places = ["/object/spec/containers/*/image", "/object/spec/volumes/1", "/namespaceObject/metadata"];
    let policy =
        Policy::validating("p").inputs(places).judge(|request, _| request.document().map(|all| deny(all.to_string())));
    let review_of = json!({"apiVersion": "admission.k8s.io/v1", "request": {
        "uid": "u", "operation": "CREATE", "name": "n", "dryRun": true,
        "object": {"metadata": {}, "spec": {"containers": [{"image": "a", "name": "c"}, 5], "volumes": [{"a": 1}, {"b": 2}]}},
        "namespaceObject": {"metadata": {"name": "ns"}, "spec": {}},
    }});
    let answer = review(&Worker::new("w", "1").policy(policy), "p", review_of, json!({})).unwrap();
    let shown: Json = json!({
        "operation": "CREATE", "dryRun": true,
        "object": {"spec": {"containers": [{"image": "a"}, null], "volumes": [{}, {"b": 2}]}},
        "namespaceObject": {"metadata": {"name": "ns"}},
    })
    .into();
    let Answer::Deny(denied) = answer else { panic!() };
    assert_eq!(denied.message().parse::<Json>().unwrap(), shown);
}

/// The helper works inside a runtime; the error of an unknown policy lists the known ones.
#[tokio::test]
async fn the_helper_works_inside_a_runtime() {
    let policy = Policy::validating("p").judge_async(|_, _| async {
        tokio::task::yield_now().await;
        deny("later").cause(Cause::new("spec", "x"))
    });
    let worker = Worker::new("w", "1").policy(policy);
    let Answer::Deny(denied) = review_async(&worker, "p", json!({}), json!({})).await.unwrap() else { panic!() };
    assert_eq!(denied.all_causes()[0].field, "spec");
    let unknown = review_async(&worker, "q", json!({}), json!({})).await.unwrap_err();
    assert_eq!(unknown.to_string(), "worker w holds no policy \"q\"; it holds: p");
}

// ------------------------------------------------------------------------------------------------ JSON

/// JSON is written as it was read: numbers and order; of duplicate members the last wins, as in the API server.
#[test]
fn json_is_written_as_it_was_read() {
    for text in [
        r#"{"z":1.0,"a":9007199254740993,"b":1e400,"c":-0,"d":1.10,"e":1E+2,"f":123456789012345678901234567890}"#,
        r#"[null,true,false,"ä\"\\\n",[],{},[[]]]"#,
        "0",
    ] {
        assert_eq!(text.parse::<Json>().unwrap().to_string(), text);
        assert_eq!(serde_json::to_string(&serde_json::from_str::<Json>(text).unwrap()).unwrap(), text);
    }
    assert_eq!(r#" { "a" : 1 , "b" : 2 , "a" : 3 } "#.parse::<Json>().unwrap().to_string(), r#"{"a":3,"b":2}"#);
}

/// Invalid JSON is an error with its position; so is JSON that is nested too deep.
#[test]
fn invalid_json_is_an_error() {
    for text in ["", "{", "[1,]", "01", "1.", "-", "1e", "\"a", "\"\\x\"", "{\"a\"}", "nul", "1 2", "{\"a\":1,}", "+1"]
    {
        assert!(text.parse::<Json>().is_err(), "{text}");
    }
    assert!("[".repeat(100_000).parse::<Json>().is_err());
    assert!(format!("{}{}", "[".repeat(400), "]".repeat(400)).parse::<Json>().is_ok());
    assert_eq!("[1,x]".parse::<Json>().unwrap_err().to_string(), "expected a value at byte 3");
}

/// Numbers are compared by their values.
#[test]
fn equal_numbers_are_equal() {
    let number = |text: &str| text.parse::<Json>().unwrap();
    assert_eq!(number("1"), number("1.0"));
    assert_eq!(number("1e2"), number("100"));
    assert_ne!(number("9007199254740993"), number("9007199254740992"));
    assert_ne!(number("1e400"), number("1e401"));
}

/// Keys are escaped.
#[test]
fn pointers_escape_keys() {
    assert_eq!(pointer(["metadata", "labels", "a/b~c"]), "/metadata/labels/a~1b~0c");
    assert_eq!(pointer([0, 1]), "/0/1");
    let operations = serde_json::to_string(&[Operation::add("/a", 1), Operation::remove("/b")]).unwrap();
    assert_eq!(operations, r#"[{"op":"add","path":"/a","value":1},{"op":"remove","path":"/b"}]"#);
}
