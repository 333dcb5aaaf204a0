//! A policy's settings: JSON from the operator's configuration, converted and checked before the policy is called.
//!
//! Settings are one JSON object; no settings are `{}`. The same conversion runs in `ValidateSettings` (when the
//! configuration is loaded) and before the first call. serde decides whether settings convert. If not, the type's schema
//! finds all errors, each at its place, since serde stops at the first.

use std::any::Any;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment};

use crate::json::Json;
use crate::panics::caught;
use crate::pointers::pointer;
use crate::schemas::Schema;

/// The settings of a policy that has none: `{}` and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoSettings {}

/// One error in settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsError {
    /// A JSON Pointer (RFC 6901) over the settings, such as `/labels/team`; empty: the settings as a whole.
    pub pointer: String,
    /// What is expected and what was found, in one sentence.
    pub message: String,
}

/// An error of the operator: all errors in a policy's settings. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSettings(pub Vec<SettingsError>);

/// The findings of an author's own check: errors and warnings.
#[derive(Debug, Default)]
pub struct Findings {
    errors: Vec<SettingsError>,
    warnings: Vec<String>,
}

impl Findings {
    /// Reports an error at a JSON Pointer over the settings (empty: the settings as a whole).
    pub fn error(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.errors.push(SettingsError { pointer: pointer.into(), message: message.into() });
    }

    /// Reports a warning about settings that are accepted, such as a deprecated member.
    pub fn warning(&mut self, message: impl Into<String>) {
        self.warnings.push(message.into());
    }
}

impl Display for SettingsError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let colon = if self.pointer.is_empty() { "" } else { ": " };
        write!(out, "{}{colon}{}", self.pointer, self.message)
    }
}

impl Display for InvalidSettings {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let errors: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        out.write_str(&errors.join("; "))
    }
}

impl std::error::Error for InvalidSettings {}

/// Converted settings, of their policy's type.
pub(crate) type Converted = Arc<dyn Any + Send + Sync>;

type Read = dyn Fn(&[u8]) -> Result<(Converted, Vec<String>), InvalidSettings> + Send + Sync;

/// The schema and the conversion of a policy's settings.
#[derive(Clone)]
pub(crate) struct SettingsType {
    /// A JSON Schema (2020-12), as JSON text.
    pub(crate) schema: Bytes,
    /// Whether the type is a JSON object, as settings are.
    pub(crate) is_object: bool,
    read: Arc<Read>,
}

impl SettingsType {
    /// Settings of type `S`, with the author's check.
    pub(crate) fn new<S>(check: Option<Arc<Check<S>>>) -> Self
    where
        S: DeserializeOwned + JsonSchema + Send + Sync + 'static,
    {
        let schema = Schema::of::<S>();
        let (text, is_object) = (schema.text(), schema.is_object());
        let read = move |text: &[u8]| {
            let (settings, mut warnings) = converted::<S>(text, &schema)?;
            warnings.extend(checked(&settings, check.as_deref())?);
            Ok((Arc::new(settings) as Converted, warnings))
        };
        Self { schema: text, is_object, read: Arc::new(read) }
    }

    /// Converts and checks settings; returns them with warnings, or all errors.
    pub(crate) fn read(&self, text: &[u8]) -> Result<(Converted, Vec<String>), InvalidSettings> {
        (self.read)(text)
    }
}

/// An author's own check.
pub(crate) type Check<S> = dyn Fn(&S, &mut Findings) + Send + Sync;

fn converted<S: DeserializeOwned>(text: &[u8], schema: &Schema) -> Result<(S, Vec<String>), InvalidSettings> {
    let value: Json = serde_json::from_slice(text)
        .map_err(|error| as_a_whole(format!("The settings must be one JSON object, never empty: {error}")))?;
    if value.as_object().is_none() {
        return Err(as_a_whole(format!("The settings must be one JSON object, found {}", value.kind())));
    }
    let mut ignored = Vec::new();
    let mut track = serde_path_to_error::Track::new();
    let mut source = serde_json::Deserializer::from_slice(text);
    let tracked = serde_path_to_error::Deserializer::new(&mut source, &mut track);
    let mut note = |path: serde_ignored::Path<'_>| ignored.push(path.to_string());
    match serde_ignored::deserialize::<_, _, S>(tracked, &mut note) {
        Ok(settings) => {
            let warnings = ignored.iter().map(|path| {
                let place = pointer(path.split('.'));
                format!("{place} is no member of these settings and is ignored")
            });
            Ok((settings, warnings.collect()))
        }
        Err(error) => {
            let mut errors = schema.errors(&value);
            if errors.is_empty() {
                let message = error.to_string();
                let message = message.split(" at line ").next().unwrap_or_default().to_owned();
                errors.push(SettingsError { pointer: place_of(&track.path()), message });
            }
            Err(InvalidSettings(errors))
        }
    }
}

/// Runs the author's check, and returns its warnings.
fn checked<S>(settings: &S, check: Option<&Check<S>>) -> Result<Vec<String>, InvalidSettings> {
    let Some(check) = check else { return Ok(Vec::new()) };
    let mut findings = Findings::default();
    caught(|| check(settings, &mut findings)).map_err(|panic| {
        tracing::error!("the check of settings of type {} panicked: {}", std::any::type_name::<S>(), panic.text);
        as_a_whole("The settings could not be checked: panic in the worker; see its log".to_owned())
    })?;
    if findings.errors.is_empty() { Ok(findings.warnings) } else { Err(InvalidSettings(findings.errors)) }
}

fn as_a_whole(message: String) -> InvalidSettings {
    InvalidSettings(vec![SettingsError { pointer: String::new(), message }])
}

fn place_of(path: &Path) -> String {
    pointer(path.iter().filter_map(|segment| match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } => Some(key.clone()),
        Segment::Enum { .. } | Segment::Unknown => None,
    }))
}
