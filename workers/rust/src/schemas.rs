//! The JSON Schema of a settings type, and all errors of a value by it.
//!
//! It implements the keywords that schemars writes for serde's types, and ignores others. serde decides whether settings
//! are accepted; the schema only finds all errors in settings that serde has rejected.

use bytes::Bytes;
use schemars::JsonSchema;
use serde_json::Value;

use crate::json::{Json, Map, quoted};
use crate::pointers::pointer;
use crate::settings::SettingsError;

/// The most levels that are checked: a type may be recursive, and settings are not nested so deep.
const DEEPEST: usize = 64;

#[derive(Clone)]
pub(crate) struct Schema(Value);

impl Schema {
    pub(crate) fn of<S: JsonSchema>() -> Self {
        Self(schemars::schema_for!(S).to_value())
    }

    pub(crate) fn text(&self) -> Bytes {
        self.0.to_string().into()
    }

    /// Whether it is the schema of an object.
    pub(crate) fn is_object(&self) -> bool {
        self.resolved(&self.0)["type"] == "object"
    }

    /// All errors of a value, each at its place.
    pub(crate) fn errors(&self, value: &Json) -> Vec<SettingsError> {
        let mut found = Vec::new();
        self.walk(value, &self.0, &[], &mut found);
        found
    }

    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str().and_then(|reference| self.0.pointer(reference.trim_start_matches('#'))) {
            Some(target) => target,
            None => schema,
        }
    }

    fn walk(&self, value: &Json, schema: &Value, place: &[String], found: &mut Vec<SettingsError>) {
        if place.len() >= DEEPEST {
            return;
        }
        let schema = self.resolved(schema);
        if let Some(forms) = schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array()) {
            self.walk_forms(value, forms, place, found);
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.walk(value, part, place, found);
        }
        if let Some(message) = error(value, schema) {
            found.push(SettingsError { pointer: pointer(place), message });
            return;
        }
        match value {
            Json::Object(members) => self.walk_members(members, schema, place, found),
            Json::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    self.walk(element, &schema["items"], &below(place, &index.to_string()), found);
                }
            }
            _ => {}
        }
    }

    fn walk_members(&self, members: &Map, schema: &Value, place: &[String], found: &mut Vec<SettingsError>) {
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                found
                    .push(SettingsError { pointer: pointer(below(place, name)), message: "Required value".to_owned() });
            }
        }
        for (name, value) in members {
            let here = below(place, name);
            match (schema["properties"].get(name), &schema["additionalProperties"]) {
                (Some(known), _) => self.walk(value, known, &here, found),
                (None, Value::Bool(false)) => {
                    let known = schema["properties"].as_object().into_iter().flat_map(serde_json::Map::keys);
                    let known: Vec<&str> = known.map(String::as_str).collect();
                    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                    let message = format!("Unknown member; known are: {known}");
                    found.push(SettingsError { pointer: pointer(&here), message });
                }
                (None, other) => self.walk(value, other, &here, found),
            }
        }
    }

    /// One of several forms: valid if one is; otherwise the errors of an optional form, or of one that has the value's type.
    fn walk_forms(&self, value: &Json, forms: &[Value], place: &[String], found: &mut Vec<SettingsError>) {
        let mut closest: Option<Vec<SettingsError>> = None;
        for form in forms {
            let mut errors = Vec::new();
            self.walk(value, form, place, &mut errors);
            if errors.is_empty() {
                return;
            }
            let is_inside = errors.iter().all(|error| error.pointer.len() > pointer(place).len());
            if is_inside || (closest.is_none() && self.resolved(form)["type"] != "null") {
                closest = Some(errors);
            }
        }
        found.extend(closest.into_iter().flatten());
    }
}

fn below(place: &[String], name: &str) -> Vec<String> {
    place.iter().cloned().chain([name.to_owned()]).collect()
}

/// The error in a value's own type or range.
fn error(value: &Json, schema: &Value) -> Option<String> {
    let types: Vec<&str> = match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !types.is_empty() && !types.iter().any(|name| is_type(value, name)) {
        return Some(format!("must be {}, is {}", types.join(" or "), shown(value)));
    }
    let choices = schema["enum"].as_array().cloned().or_else(|| schema.get("const").map(|only| vec![only.clone()]));
    if let Some(choices) = choices {
        if !choices.iter().any(|choice| Json::from(choice.clone()) == *value) {
            let names: Vec<String> = choices.iter().map(Value::to_string).collect();
            return Some(format!("must be one of {}, is {}", names.join(", "), shown(value)));
        }
    }
    let Json::Number(number) = value else { return None };
    if let Some(least) = schema["minimum"].as_f64().filter(|least| number.as_f64() < *least) {
        return Some(format!("must be at least {least}, is {}", number.as_str()));
    }
    let most = schema["maximum"].as_f64().filter(|most| number.as_f64() > *most)?;
    Some(format!("must be at most {most}, is {}", number.as_str()))
}

fn is_type(value: &Json, name: &str) -> bool {
    match value {
        Json::Null => name == "null",
        Json::Bool(_) => name == "boolean",
        Json::Number(number) => name == "number" || (name == "integer" && number.as_i128().is_some()),
        Json::String(_) => name == "string",
        Json::Array(_) => name == "array",
        Json::Object(_) => name == "object",
    }
}

/// A value in a message: a small one as it is, a large one by its type.
fn shown(value: &Json) -> String {
    match value {
        Json::String(text) if text.len() <= 64 => quoted(text),
        Json::Number(_) | Json::Bool(_) => value.to_string(),
        _ => value.kind().to_owned(),
    }
}
