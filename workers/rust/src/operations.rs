//! The operations of a JSON Patch (RFC 6902), for those who do not write them with `json!`.

use serde::Serialize;

/// One operation of a JSON Patch. [`pointer`](crate::pointer) makes paths, and escapes `/` and `~` in keys.
///
/// What it is given is written as it is when the answer is made: a [`Json`](crate::Json) keeps its numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Operation<V> {
    /// Adds a member, replaces one, or inserts an element; `-` is the end of an array.
    Add {
        /// Where.
        path: String,
        /// What.
        value: V,
    },
    /// Removes what is there.
    Remove {
        /// Where.
        path: String,
    },
    /// Replaces what is there.
    Replace {
        /// Where.
        path: String,
        /// By what.
        value: V,
    },
}

impl<V> Operation<V> {
    /// Adds `value` at `path`.
    pub fn add(path: impl Into<String>, value: V) -> Self {
        Self::Add { path: path.into(), value }
    }

    /// Removes what is at `path`.
    pub fn remove(path: impl Into<String>) -> Self {
        Self::Remove { path: path.into() }
    }

    /// Replaces what is at `path`.
    pub fn replace(path: impl Into<String>, value: V) -> Self {
        Self::Replace { path: path.into(), value }
    }
}
