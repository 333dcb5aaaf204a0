//! What a policy is sent: the parts of an AdmissionRequest that it claims, as the gateway cuts them out.
//!
//! * `kind`, `resource`, `subResource`, `operation` and `dryRun` always; `uid` never; `namespaceObject` only if it is
//!   named.
//! * A claimed value that exists appears, and so does every existing object or array on the way to one. What does not
//!   exist does not appear. Order stays.
//! * Arrays keep length and positions: an element that no claim reaches is `{}`, `[]` or null, by its own kind.
//! * Where claims overlap, the wider wins.
//!
//! The gateway does this; here it serves tests, so that a policy which reads more than it claims fails before it is
//! deployed.

use crate::claims::Claim;
use crate::json::{Json, Map};
use crate::pointers::tokens;

/// Members of every document.
const ALWAYS: [&str; 5] = ["kind", "resource", "subResource", "operation", "dryRun"];

/// What "everything" does not hold: nobody is sent the one, and the other is no member of the request itself.
const NEVER_CALLED: [&str; 2] = ["uid", "namespaceObject"];

/// The document of a request for a policy with these inputs; not said is everything.
pub(crate) fn document_of(request: &Map, inputs: &Claim) -> Map {
    let Claim::Pointers(pointers) = inputs else {
        let called = request.iter().filter(|(name, _)| !NEVER_CALLED.contains(&name.as_str()));
        return called.map(|(name, value)| (name.clone(), value.clone())).collect();
    };
    let always = ALWAYS.iter().map(|name| vec![(*name).to_owned()]);
    let paths: Vec<Vec<String>> = always.chain(pointers.iter().map(|place| tokens(place))).collect();
    let paths: Vec<&[String]> = paths.iter().map(Vec::as_slice).collect();
    members(request, &paths)
}

fn members(value: &Map, paths: &[&[String]]) -> Map {
    let mut found = Map::new();
    for (name, part) in value {
        let below = below(paths, name);
        if below.iter().any(|path| path.is_empty()) {
            found.insert(name.clone(), part.clone());
        } else if !below.is_empty() && matches!(part, Json::Object(_) | Json::Array(_)) {
            found.insert(name.clone(), cut(part, &below));
        }
    }
    found
}

/// What the paths reach of a value; of one that they do not reach, its kind.
fn cut(value: &Json, paths: &[&[String]]) -> Json {
    if paths.iter().any(|path| path.is_empty()) {
        return value.clone();
    }
    match value {
        Json::Object(held) => Json::Object(if paths.is_empty() { Map::new() } else { members(held, paths) }),
        Json::Array(_) if paths.is_empty() => Json::Array(Vec::new()),
        Json::Array(elements) => {
            let parts = elements.iter().enumerate();
            Json::Array(parts.map(|(index, part)| cut(part, &below(paths, &index.to_string()))).collect())
        }
        _ => Json::Null,
    }
}

/// The paths that go through this member or element, from there on.
fn below<'a>(paths: &[&'a [String]], name: &str) -> Vec<&'a [String]> {
    let through = paths.iter().filter(|path| path.first().is_some_and(|token| token == name || token == "*"));
    through.map(|path| &path[1..]).collect()
}
