//! JSON values that keep their text, for policies that return the object that they were sent.
//!
//! `serde_json::Value` stores a number as an `i64`, a `u64` or the nearest `f64`: it prints `1.10` as `1.1`, and rejects
//! `1e400`. (Its feature `arbitrary_precision` would change that for the author's whole program, and break the types of
//! `k8s-openapi`.) Here a number keeps its text, members keep their order, and of two members with the same name the last
//! one wins, as in the API server. So parts that a policy does not change stay the same.

mod number;
mod reading;

use std::fmt::{self, Display, Formatter, Write};

use indexmap::IndexMap;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

pub use number::Number;
pub use reading::JsonError;

/// The members of a JSON object, in their order.
pub type Map = IndexMap<String, Json>;

/// A JSON value that is written as it was read.
///
/// It is parsed from JSON text (`request.object::<Json>()`, a member of a settings type, `text.parse::<Json>()`), or
/// converted from a `serde_json::Value`: `Json::from(json!({"team": "a"}))`. Its `Display` is compact JSON text.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Json {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it is written.
    Number(Number),
    /// A text.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object.
    Object(Map),
}

impl Json {
    /// A member of an object; None if there is none, or this is not an object.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        self.as_object()?.get(name)
    }

    /// The value at this path of members; None if there is none.
    #[must_use]
    pub fn at<'a>(&self, path: impl IntoIterator<Item = &'a str>) -> Option<&Self> {
        path.into_iter().try_fold(self, |value, name| value.get(name))
    }

    /// The members, if it is an object.
    #[must_use]
    pub fn as_object(&self) -> Option<&Map> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }

    /// The members, mutable; a value that is not an object becomes an empty one.
    pub fn object_mut(&mut self) -> &mut Map {
        if !matches!(self, Self::Object(_)) {
            *self = Self::Object(Map::new());
        }
        let Self::Object(members) = self else { unreachable!("it is an object") };
        members
    }

    /// The elements, if it is an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&Vec<Self>> {
        if let Self::Array(elements) = self { Some(elements) } else { None }
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// Its type as JSON names it, with an article: for messages that must not show the value.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

/// A text as a JSON string: `"a\"b"`. Only the necessary characters are escaped.
#[must_use]
pub fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

impl Display for Json {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("null"),
            Self::Bool(value) => write!(out, "{value}"),
            Self::Number(number) => out.write_str(number.as_str()),
            Self::String(text) => out.write_str(&quoted(text)),
            Self::Array(elements) => {
                out.write_char('[')?;
                for (index, element) in elements.iter().enumerate() {
                    write!(out, "{}{element}", if index == 0 { "" } else { "," })?;
                }
                out.write_char(']')
            }
            Self::Object(members) => {
                out.write_char('{')?;
                for (index, (name, value)) in members.iter().enumerate() {
                    write!(out, "{}{}:{value}", if index == 0 { "" } else { "," }, quoted(name))?;
                }
                out.write_char('}')
            }
        }
    }
}

impl std::str::FromStr for Json {
    type Err = JsonError;

    fn from_str(text: &str) -> Result<Self, JsonError> {
        reading::read(text)
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        use serde_json::Value;
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(number) => Self::Number(Number::from(number)),
            Value::String(text) => Self::String(text),
            Value::Array(elements) => Self::Array(elements.into_iter().map(Self::from).collect()),
            Value::Object(members) => {
                Self::Object(members.into_iter().map(|(name, value)| (name, Self::from(value))).collect())
            }
        }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

/// From JSON text only, so not inside `#[serde(flatten)]` or an untagged enum, where serde has already parsed it.
impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(source)?;
        reading::read(text.get()).map_err(D::Error::custom)
    }
}

/// To JSON text only.
impl Serialize for Json {
    fn serialize<S: Serializer>(&self, target: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => target.serialize_unit(),
            Self::Bool(value) => target.serialize_bool(*value),
            Self::Number(number) => number.serialize(target),
            Self::String(text) => target.serialize_str(text),
            Self::Array(elements) => target.collect_seq(elements),
            Self::Object(members) => target.collect_map(members),
        }
    }
}

impl schemars::JsonSchema for Json {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Json".into()
    }

    /// Any value.
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        true.into()
    }
}
