//! A JSON number as its text.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON number, as it is written.
///
/// Two numbers are equal if their values are equal as `i128` or else as `f64`: `1` is `1.0`.
#[derive(Debug, Clone)]
pub struct Number(Box<str>);

impl Number {
    /// A number from a text that the caller has checked against JSON's grammar.
    pub(super) fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its value, if it is written as a whole number that fits an `i128`.
    #[must_use]
    pub fn as_i128(&self) -> Option<i128> {
        self.0.parse().ok()
    }

    /// The nearest double; infinite beyond its range.
    #[must_use]
    pub fn as_f64(&self) -> f64 {
        self.0.parse().unwrap_or(f64::NAN)
    }
}

impl PartialEq for Number {
    #[allow(clippy::float_cmp, reason = "the nearest doubles of two texts, not results of arithmetic")]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
            || match (self.as_i128(), other.as_i128()) {
                (Some(one), Some(two)) => one == two,
                _ => self.as_f64().is_finite() && self.as_f64() == other.as_f64(),
            }
    }
}

impl From<serde_json::Number> for Number {
    fn from(number: serde_json::Number) -> Self {
        Self(number.to_string().into())
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Self(value.to_string().into())
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, target: S) -> Result<S::Ok, S::Error> {
        let text = RawValue::from_string(self.0.clone().into_string()).map_err(serde::ser::Error::custom)?;
        text.serialize(target)
    }
}
