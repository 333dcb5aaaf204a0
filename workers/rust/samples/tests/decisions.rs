//! The samples' decisions are those of the Python samples, to the letter, for all recorded reviews.
//!
//! `expected.json` holds what those answered with the settings of `settings.json`: denials, changes and warnings, by
//! recording, policy and place of the settings. What is not in it is a plain allow.

#![allow(missing_docs, reason = "tests")]

use std::collections::BTreeMap;
use std::path::Path;

use admission_worker::testing::review;
use admission_worker::{Answer, Json, json::Map};
use samples::worker;

fn read(path: impl AsRef<Path>) -> Json {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The recorded reviews of a real API server, by name.
fn recordings() -> BTreeMap<String, Json> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/recordings");
    let files = std::fs::read_dir(folder).expect("the recordings").map(|file| file.expect("a file").path());
    let reviews = files.filter(|path| path.extension().is_some_and(|kind| kind == "json")).filter_map(|path| {
        let recording = read(&path);
        let body: Json = recording.get("body")?.as_str()?.parse().expect("a review");
        body.get("request")?;
        Some((path.file_stem()?.to_string_lossy().into_owned(), body))
    });
    reviews.collect()
}

fn texts<'a>(texts: impl IntoIterator<Item = &'a String>) -> Json {
    Json::Array(texts.into_iter().map(|text| Json::from(text.as_str())).collect())
}

/// An answer as `expected.json` has it; None: a plain allow.
fn told(answer: &Answer) -> Option<Json> {
    let members = match answer {
        Answer::Allow(allowed) => {
            let change = allowed.change().map(|change| change.value::<Json>().expect("a patch"));
            let change = change.unwrap_or(Json::Array(Vec::new()));
            if change == Json::Array(Vec::new()) && allowed.all_warnings().is_empty() {
                return None;
            }
            vec![("allow", change), ("warnings", texts(allowed.all_warnings()))]
        }
        Answer::Deny(denied) => {
            let causes = denied.all_causes().iter().map(|cause| texts([&cause.field, &cause.message, &cause.reason]));
            let code = "403".parse().expect("a number");
            vec![
                ("deny", denied.message().into()),
                ("code", code),
                ("reason", "Forbidden".into()),
                ("causes", Json::Array(causes.collect())),
            ]
        }
        Answer::Failure(failed) => panic!("{}", failed.message()),
    };
    Some(Json::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()))
}

/// Every policy, every recording, all settings.
#[test]
fn recorded_reviews_are_decided_as_in_python() {
    let (worker, settings, expected) = (worker(), read("tests/settings.json"), read("tests/expected.json"));
    let recordings = recordings();
    let expected = expected.as_object().expect("an object");
    assert_eq!(recordings.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "no recording is left out");
    for (name, body) in &recordings {
        let mut found = Map::new();
        for (policy, all) in settings.as_object().expect("an object") {
            for (index, settings) in all.as_array().into_iter().flatten().enumerate() {
                let answer = review(&worker, policy, body, settings).unwrap_or_else(|error| panic!("{name}: {error}"));
                found.extend(told(&answer).map(|told| (format!("{policy} {index}"), told)));
            }
        }
        assert_eq!(Json::Object(found).to_string(), expected[name].to_string(), "{name}");
    }
}
