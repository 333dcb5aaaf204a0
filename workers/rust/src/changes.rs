//! The change of an allow: a JSON Patch, a JSON Merge Patch, or the whole object, as JSON text.
//!
//! The text is written where the answer is made, so that later changes of the values do not change the answer. The
//! gateway checks whether a patch applies.

use bytes::Bytes;
use indexmap::IndexMap;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::contract::allow::Change as Wire;
use crate::pointers::is_pointer;

/// The required members of each operation besides `op`: RFC 6902, section 4.
const MEMBERS: [(&str, [&str; 2]); 6] = [
    ("add", ["path", "value"]),
    ("remove", ["path", "path"]),
    ("replace", ["path", "value"]),
    ("move", ["from", "path"]),
    ("copy", ["from", "path"]),
    ("test", ["path", "value"]),
];

/// The change of an allow, as JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A JSON Patch (RFC 6902).
    JsonPatch(Bytes),
    /// A JSON Merge Patch (RFC 7386).
    MergePatch(Bytes),
    /// The complete changed object.
    Object(Bytes),
}

impl Change {
    /// Its JSON text.
    #[must_use]
    pub fn content(&self) -> &Bytes {
        match self {
            Self::JsonPatch(content) | Self::MergePatch(content) | Self::Object(content) => content,
        }
    }

    /// Its content parsed, for tests: the operations, the merge patch or the object.
    ///
    /// # Errors
    /// The content is not a `T`.
    pub fn value<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(self.content())
    }

    pub(crate) fn json_patch(operations: impl Serialize) -> Result<Self, String> {
        let content = encoded(operations, "patch")?;
        check_operations(&content)?;
        Ok(Self::JsonPatch(content))
    }

    pub(crate) fn merge_patch(changes: impl Serialize) -> Result<Self, String> {
        object(changes, "merge").map(Self::MergePatch)
    }

    pub(crate) fn whole_object(whole: impl Serialize) -> Result<Self, String> {
        object(whole, "mutated").map(Self::Object)
    }

    /// Its name, for messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::JsonPatch(_) => "patch",
            Self::MergePatch(_) => "merge",
            Self::Object(_) => "mutated",
        }
    }

    /// The contract's message; None for an empty change, which is not sent.
    pub(crate) fn message(&self) -> Option<Wire> {
        match self {
            Self::JsonPatch(content) => (content != "[]").then(|| Wire::JsonPatch(content.clone())),
            Self::MergePatch(content) => (content != "{}").then(|| Wire::MergePatch(content.clone())),
            Self::Object(content) => Some(Wire::Object(content.clone())),
        }
    }
}

fn encoded(value: impl Serialize, what: &str) -> Result<Bytes, String> {
    match serde_json::to_vec(&value) {
        Ok(content) => Ok(content.into()),
        Err(_) => Err(format!("{what}: cannot be written as JSON")), // serde's text may contain a value
    }
}

fn object(value: impl Serialize, what: &str) -> Result<Bytes, String> {
    let content = encoded(value, what)?;
    if content.first() == Some(&b'{') { Ok(content) } else { Err(format!("{what}: must be a JSON object")) }
}

/// Checks that the text is a list of operations that RFC 6902 defines.
fn check_operations(content: &[u8]) -> Result<(), String> {
    let operations: Vec<IndexMap<String, &RawValue>> =
        serde_json::from_slice(content).map_err(|_| "patch: must be a list of operations".to_owned())?;
    for (index, operation) in operations.iter().enumerate() {
        let text = |name: &str| -> Option<String> { serde_json::from_str(operation.get(name)?.get()).ok() };
        let op = text("op").unwrap_or_default();
        let Some((_, needed)) = MEMBERS.iter().find(|(name, _)| *name == op) else {
            let names = MEMBERS.map(|(name, _)| name).join(", ");
            return Err(format!("patch[{index}].op: must be one of {names}"));
        };
        if let Some(missing) = needed.iter().find(|name| !operation.contains_key(**name)) {
            return Err(format!("patch[{index}]: {op} needs {missing}"));
        }
        for name in ["path", "from"] {
            if operation.contains_key(name) && !text(name).is_some_and(|place| is_pointer(&place)) {
                return Err(format!("patch[{index}].{name}: must be a JSON Pointer such as /metadata/labels"));
            }
        }
    }
    Ok(())
}
