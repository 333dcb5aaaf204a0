//! The samples' rules, beyond what the recordings check.

#![allow(missing_docs, reason = "tests")]

use admission_worker::testing::{ReviewError, review};
use admission_worker::{Answer, Json, allow};
use samples::image_registry::rewritten;
use samples::patterns::Pattern;
use samples::quantities::quantity;
use samples::{globs, label_syntax, worker};
use serde_json::{Value, json};

fn errors(policy: &str, settings: Value) -> Vec<String> {
    match review(&worker(), policy, json!({"operation": "CREATE"}), settings) {
        Err(ReviewError::InvalidSettings(invalid)) => invalid.0.iter().map(ToString::to_string).collect(),
        Ok(_) => Vec::new(),
        Err(other) => panic!("{other}"),
    }
}

/// Exact, capped, and rounded up at a billionth.
#[test]
fn quantities_are_kubernetes_own() {
    let of = |text: &str| quantity(&Json::from(text));
    for (text, nanos) in [
        ("1", 1_000_000_000),
        ("100m", 100_000_000),
        ("0.5", 500_000_000),
        (".5", 500_000_000),
        ("5.", 5_000_000_000),
        ("-1k", -1_000_000_000_000),
        ("1Ki", 1_024_000_000_000),
        ("1.5Gi", 1_610_612_736_000_000_000),
        ("1e3", 1_000_000_000_000),
        ("1E3", 1_000_000_000_000),
        ("1E", 1_000_000_000_000_000_000_000_000_000),
        ("0.1n", 1),
        ("1e-999999999", 1),
        ("0e999999999", 0),
        ("1e999999999", 9_223_372_036_854_775_807_000_000_000),
        ("9223372036854775807", 9_223_372_036_854_775_807_000_000_000),
        ("8Ei", 9_223_372_036_854_775_807_000_000_000),
        ("0.0000000001Ki", 103),
    ] {
        assert_eq!(of(text), Ok(nanos), "{text}");
    }
    assert_eq!(quantity(&"0.25".parse().unwrap()), Ok(250_000_000), "a number");
    for text in ["", ".", "+", "1 ", "1kk", "0x1", "1e", "1mi", "e3", "\u{661}", &"1".repeat(129)] {
        assert!(of(text).unwrap_err().contains("is no quantity such as 100m, 0.5 or 1Gi"), "{text}");
    }
    assert!(quantity(&Json::Bool(true)).is_err());
}

/// RE2's syntax, matched against the whole text.
#[test]
fn patterns_are_those_of_re2() {
    for (pattern, text, is_match) in [
        ("a|ab", "ab", true),
        ("front|back", "backs", false),
        (r"\d+", "12", true),
        (r"\d+", "\u{661}", false),
        (r"[\d_]+", "1_2", true),
        (r"\w+", "ä", false),
        (r"[^\W]+", "ab_1", true),
        (r".\b", "a", true),
        ("[a[b]+", "[a", true),
        ("[a&&b]+", "&a", true),
        ("[]a]+", "]a", true),
        ("[^]a]", "b", true),
        (r"\Qa.b\E+", "a.b", true),
        (r"\Qa.b", "axb", false),
        (r"\<a\>", "<a>", true),
        ("a{2}", "aa", true),
        ("a{,2}", "a{,2}", true),
        ("{", "{", true),
        ("(?i)TEAM", "team", true),
        ("(?P<x>a)(?:b)", "ab", true),
        ("[[:alpha:]]+", "ab", true),
        ("a*?", "aaa", true),
        (".*", "a\nb", false),
        (r"a\Bb", "ab", true),
        (r"\C\C", "ä", true),
        (r"\101\0", "A\0", true),
        ("[+--]", ",", true),
        ("[--a]", ".", true),
    ] {
        let found = Pattern::new(pattern);
        assert!(found.is_valid(), "{pattern}");
        assert_eq!(found.matches(text), is_match, "{pattern} {text}");
    }
    for pattern in [
        "(", ")", "a)(b", "[", "*", "a**", "a{1001}", r"\1", "(?=a)", "(?x)a", r"\u0041", r"\", "[b-a]", "a+{2}",
        "[a--b]",
    ] {
        assert!(!Pattern::new(pattern).is_valid(), "{pattern}");
    }
}

/// As Python's fnmatch reads them.
#[test]
fn globs_are_those_of_shells() {
    for (glob, text, is_match) in [
        ("registry.example.com/*", "registry.example.com/a/b:1", true),
        ("*", "", true),
        ("a*b*c", "a-b-b-c", true),
        ("a*b*c", "a-b-b", false),
        ("?", "ä", true),
        ("?", "", false),
        ("[a-c]x", "bx", true),
        ("[!a-c]x", "bx", false),
        ("[]]", "]", true),
        ("[!]]", "]", false),
        ("[a", "[a", true),
        ("[c-a]", "b", false),
        ("[!c-a]", "b", true),
        ("[a-]", "-", true),
        ("A", "a", false),
    ] {
        assert_eq!(globs::matches(glob, text), is_match, "{glob} {text}");
    }
    assert!(!globs::matches(&"*a".repeat(50), &"b".repeat(5000)));
}

/// Places are compared by whole components.
#[test]
fn images_are_rewritten_by_whole_components() {
    for (image, source, target, moved) in [
        ("nginx", "docker.io", "r.example.com/m", Some("r.example.com/m/library/nginx")),
        ("user/app:v1", "docker.io", "r.example.com/m", Some("r.example.com/m/user/app:v1")),
        ("index.docker.io/user/app", "docker.io", "r.example.com", Some("r.example.com/user/app")),
        ("localhost/app", "docker.io", "r.example.com", None),
        ("docker.io:443/app", "docker.io", "r.example.com", None),
        ("old.example.com:5000/a", "old.example.com", "new.example.com", None),
        ("old.example.com/teams/a:1", "old.example.com/team", "new.example.com/x", None),
        ("old.example.com/team/a:1", "old.example.com/team/a", "new.example.com/b", Some("new.example.com/b:1")),
        ("mirror/nginx", "docker.io", "docker.io/mirror", None),
        ("docker.io/a:1", "docker.io/library/a", "docker.io/a", None),
    ] {
        assert_eq!(rewritten(image, source, target).as_deref(), moved, "{image}");
    }
}

/// Kubernetes' own keys and values.
#[test]
fn labels_are_kubernetes_own() {
    let longest = "a".repeat(63);
    for key in ["team", "a.b/c_D", longest.as_str(), "A"] {
        assert!(label_syntax::is_key(key), "{key}");
    }
    for key in ["", "/a", "a/", "a/b/c", "-a", "A.b/c", "a..b/c", &"a".repeat(64), "ä"] {
        assert!(!label_syntax::is_key(key), "{key}");
    }
    assert!(label_syntax::is_value("") && !label_syntax::is_value("a b"));
}

/// The errors of invalid settings are equal to those of the Python samples.
#[test]
fn wrong_settings_have_the_errors_of_the_python_samples() {
    assert_eq!(
        errors("required-labels", json!({"labels": {"-": "", "a": "(\u{e4}\""}})),
        [
            "/labels/-: \"-\" cannot be a label's key",
            "/labels/a: \"(\u{e4}\\\"\" is no regular expression (RE2 syntax)"
        ]
    );
    assert_eq!(
        errors("default-labels", json!({"labels": {"a": "b c"}})),
        ["/labels/a: \"b c\" cannot be a label's value"]
    );
    assert_eq!(
        errors(
            "default-resources",
            json!({"requests": {"cpu": "2", "memory": "x"}, "limits": {"cpu": 1, "memory": -1}})
        ),
        [
            "/requests/memory: \"x\" is no quantity such as 100m, 0.5 or 1Gi",
            "/limits/memory: must not be negative, is -1",
            "/requests/cpu: the default request 2 exceeds the default limit 1",
        ]
    );
    let found = errors("default-resources", json!({"requests": {"gpu": 1, "cpu": true}}));
    assert!(found.iter().any(|error| error.starts_with("/requests/gpu: ")), "{found:?}");
    assert!(found.iter().any(|error| error == "/requests/cpu: must be string or number, is true"), "{found:?}");
    assert_eq!(
        errors("image-registry", json!({"from": "index.docker.io", "to": "mirror"})),
        [
            "/to: must be a registry with or without a path, such as docker.io or mirror.example.com/hub, is \"mirror\"",
            "/from: index.docker.io is another name of docker.io: write docker.io",
        ]
    );
    assert_eq!(
        errors("sidecar", json!({"container": {"name": "", "restartPolicy": "Never"}})),
        [
            "/container/name: Required value: a text that is not empty",
            "/container/image: Required value: a text that is not empty",
            "/container/restartPolicy: must be Always (a sidecar that init containers can use) or absent",
        ]
    );
    assert_eq!(errors("sidecar", json!({"container": 5})), ["/container: must be object, is 5"]);
    assert_eq!(errors("required-labels", json!({})), ["/labels: Required value"]);
}

/// A default never makes a request exceed a limit; numbers keep their text.
#[test]
fn contradictory_defaults_are_warnings() {
    let request: Json =
        r#"{"operation":"CREATE","kind":{"group":"","version":"v1","kind":"Pod"},"object":{"spec":{"containers":[
        {"name":"a","resources":{"limits":{"cpu":0.10}}},{"name":"b","resources":{"requests":{}}}]}}}"#
            .parse()
            .unwrap();
    let settings = json!({"requests": {"cpu": "200m"}, "limits": {"memory": "1Gi"}});
    let Answer::Allow(allowed) = review(&worker(), "default-resources", request, settings).unwrap() else { panic!() };
    assert_eq!(
        allowed.all_warnings(),
        ["spec.containers[0]: default cpu request 200m exceeds its limit 0.10: not set"]
    );
    let operations: Json = allowed.change().unwrap().value().unwrap();
    assert_eq!(
        operations.to_string(),
        concat!(
            r#"[{"op":"add","path":"/spec/containers/0/resources/limits/memory","value":"1Gi"},"#,
            r#"{"op":"add","path":"/spec/containers/1/resources/requests/cpu","value":"200m"},"#,
            r#"{"op":"add","path":"/spec/containers/1/resources/limits","value":{"memory":"1Gi"}}]"#
        )
    );
}

/// A sidecar's container is added as it is written.
#[test]
fn a_sidecar_keeps_its_numbers() {
    let settings: Json = r#"{"container":{"name":"p","image":"i","z":1e400,"a":1.0}}"#.parse().unwrap();
    let pod = json!({"operation": "CREATE", "kind": {"group": "", "kind": "Pod"}, "object": {"spec": {}}});
    let Answer::Allow(allowed) = review(&worker(), "sidecar", &pod, &settings).unwrap() else { panic!() };
    let added = r#"[{"op":"add","path":"/spec/containers","value":[{"name":"p","image":"i","z":1e400,"a":1.0}]}]"#;
    assert_eq!(allowed.change().unwrap().content(), added);
    let taken = json!({"operation": "CREATE", "kind": {"group": "", "kind": "Pod"},
        "object": {"spec": {"initContainers": [{"name": "p"}]}}});
    let warning = "sidecar \"p\" is not added: an init container has its name";
    assert_eq!(review(&worker(), "sidecar", taken, settings).unwrap(), allow().warning(warning).into());
}
