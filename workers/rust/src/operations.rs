//! The operations of a JSON Patch (RFC 6902), an alternative to `json!`.

use serde::Serialize;

/// One operation of a JSON Patch. [`pointer`](crate::pointer) makes paths, and escapes `/` and `~` in keys.
///
/// Values are serialized when the answer is made; a [`Json`](crate::Json) keeps the text of its numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Operation<V> {
    /// Adds a member, replaces one, or inserts an element; `-` is the end of an array.
    Add {
        /// The place, as a JSON Pointer over the object.
        path: String,
        /// The value.
        value: V,
    },
    /// Removes a value.
    Remove {
        /// The place, as a JSON Pointer over the object.
        path: String,
    },
    /// Replaces a value.
    Replace {
        /// The place, as a JSON Pointer over the object.
        path: String,
        /// The new value.
        value: V,
    },
}

impl<V> Operation<V> {
    /// Adds `value` at `path`.
    pub fn add(path: impl Into<String>, value: V) -> Self {
        Self::Add { path: path.into(), value }
    }

    /// Removes the value at `path`.
    pub fn remove(path: impl Into<String>) -> Self {
        Self::Remove { path: path.into() }
    }

    /// Replaces the value at `path`.
    pub fn replace(path: impl Into<String>, value: V) -> Self {
        Self::Replace { path: path.into(), value }
    }
}
