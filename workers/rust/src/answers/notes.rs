//! The common part of allow and deny: warnings, audit annotations, and how long the verdict may be reused.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Allow, Deny};

/// A hundred years. A protobuf Duration holds 10,000 years; a time this long is an error in any case.
pub const LONGEST_CACHE: Duration = Duration::from_secs(36_500 * 24 * 60 * 60);

/// The contract's: "letters, digits, `-`, `_`, `.`, at most 63".
const LONGEST_KEY: usize = 63;

/// How long a verdict may be reused; it can only shorten what the operator configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// Never.
    NoStore,
    /// For so long.
    For(Duration),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Notes {
    pub(crate) warnings: Vec<String>,
    pub(crate) audit_annotations: BTreeMap<String, String>,
    pub(crate) cache: Option<Cache>,
    /// The first error that makes the answer invalid.
    pub(crate) error: Option<String>,
}

impl Notes {
    pub(crate) fn invalid(&mut self, error: String) {
        self.error.get_or_insert(error);
    }

    fn annotate(&mut self, key: String, value: String) {
        let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if key.is_empty() || key.len() > LONGEST_KEY || !key.chars().all(is_legal) {
            self.invalid(format!(
                "audit_annotation: the key {key:?} must be 1 to {LONGEST_KEY} letters, digits, '-', '_', '.'"
            ));
        }
        self.audit_annotations.insert(key, value);
    }

    fn cached(&mut self, cache: Cache) {
        if matches!(cache, Cache::For(time) if time > LONGEST_CACHE) {
            self.invalid("cache_for: must be from 0 to 36500 days; no_store() is never".to_owned());
        }
        self.cache = Some(cache);
    }
}

macro_rules! noted {
    ($($answer:ident),*) => {$(
        impl $answer {
            /// Adds a warning, which kubectl shows to the user; under 120 characters, without control characters.
            #[must_use]
            pub fn warning(mut self, text: impl Into<String>) -> Self {
                self.notes.warnings.push(text.into());
                self
            }

            /// Adds warnings.
            #[must_use]
            pub fn warnings<T: Into<String>>(mut self, texts: impl IntoIterator<Item = T>) -> Self {
                self.notes.warnings.extend(texts.into_iter().map(Into::into));
                self
            }

            /// Adds an entry to the API server's audit log. Keys have 1 to 63 letters, digits, `-`, `_`, `.`: any other
            /// makes the answer a failure. The value must be the same for the same document and settings.
            #[must_use]
            pub fn audit_annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
                self.notes.annotate(key.into(), value.into());
                self
            }

            /// How long this verdict may be reused, at most [`LONGEST_CACHE`](crate::LONGEST_CACHE); it can only shorten
            /// what the operator configured.
            #[must_use]
            pub fn cache_for(mut self, time: Duration) -> Self {
                self.notes.cached(Cache::For(time));
                self
            }

            /// This verdict must never be reused.
            #[must_use]
            pub fn no_store(mut self) -> Self {
                self.notes.cached(Cache::NoStore);
                self
            }

            /// The warnings, for tests.
            #[must_use]
            pub fn all_warnings(&self) -> &[String] {
                &self.notes.warnings
            }

            /// The audit annotations, for tests.
            #[must_use]
            pub fn all_audit_annotations(&self) -> &BTreeMap<String, String> {
                &self.notes.audit_annotations
            }
        }
    )*};
}

noted!(Allow, Deny);
