//! The document of a policy: the parts of an AdmissionRequest that it claims, as the gateway selects them.
//!
//! * `kind`, `resource`, `subResource`, `operation` and `dryRun` are always present; `uid` never; `namespaceObject` only
//!   if it is claimed.
//! * A claimed value that exists is present, and so is every existing object or array on its path. Order is kept.
//! * Arrays keep length and positions: an element that no claim reaches is `{}`, `[]` or null, by its type.
//! * Where claims overlap, the wider wins.
//!
//! The gateway does this; `testing` repeats it, so that a policy that reads more than it claims fails its tests.

use crate::claims::Claim;
use crate::json::{Json, Map};
use crate::pointers::tokens;

/// Members of every document.
const ALWAYS: [&str; 5] = ["kind", "resource", "subResource", "operation", "dryRun"];

/// Not part of "everything": `uid` is never sent, and `namespaceObject` is no member of the request itself.
const NOT_IN_EVERYTHING: [&str; 2] = ["uid", "namespaceObject"];

/// The document of a request for a policy with these inputs; without a claim, everything.
pub(crate) fn document_of(request: &Map, inputs: &Claim) -> Map {
    let Claim::Pointers(pointers) = inputs else {
        let sent = request.iter().filter(|(name, _)| !NOT_IN_EVERYTHING.contains(&name.as_str()));
        return sent.map(|(name, value)| (name.clone(), value.clone())).collect();
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

/// The part of a value that the paths reach; of a value that none reaches, an empty one of its type.
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

/// The rests of the paths that pass through this member or element.
fn below<'a>(paths: &[&'a [String]], name: &str) -> Vec<&'a [String]> {
    let through = paths.iter().filter(|path| path.first().is_some_and(|token| token == name || token == "*"));
    through.map(|path| &path[1..]).collect()
}
