//! The results of a policy's function: an answer or an error.

use std::any::{Any, type_name};
use std::error::Error;
use std::fmt::Display;

use crate::answers::{Allow, Answer, Deny, Failure, allow};
use crate::request::InvalidDocument;

/// Converts into an answer: answers, `()` and `None` (allow), and a `Result` of these.
///
/// So a validating policy may return `Option<Deny>`, and one that calls another service `Result<Answer, MyError>`.
pub trait IntoAnswer {
    /// The answer.
    ///
    /// # Errors
    /// The policy's own error, which makes the outcome a failure.
    fn into_answer(self) -> Result<Answer, PolicyError>;
}

/// A policy's own error. The gateway receives its type; its text, which may contain a Secret, goes to the worker's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyError {
    /// The type of the error, or `panic`.
    pub(crate) kind: String,
    /// Its text.
    pub(crate) text: String,
    /// Whether the text contains no values, and may be shown.
    pub(crate) is_safe: bool,
}

impl Display for PolicyError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}: {}", self.kind, self.text)
    }
}

impl Error for PolicyError {}

impl PolicyError {
    fn of<E: Display + 'static>(error: &E) -> Self {
        match document_error(error) {
            Some(ours) => Self { kind: "InvalidDocument".to_owned(), text: ours.to_string(), is_safe: true },
            None => Self { kind: type_name::<E>().to_owned(), text: format!("{error:#}"), is_safe: false },
        }
    }

    /// A panic, with its text if it has one: `panic!` makes it a `&str` or a `String`.
    pub(crate) fn of_panic(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Self { kind: "panic".to_owned(), text: text.unwrap_or_default(), is_safe: false }
    }
}

/// The SDK's own error, also inside a `Box<dyn Error>`.
fn document_error<E: 'static>(error: &E) -> Option<&InvalidDocument> {
    let error: &dyn Any = error;
    let boxed = || error.downcast_ref::<Box<dyn Error + Send + Sync>>()?.downcast_ref();
    let local = || error.downcast_ref::<Box<dyn Error>>()?.downcast_ref();
    error.downcast_ref().or_else(boxed).or_else(local)
}

impl IntoAnswer for Answer {
    fn into_answer(self) -> Result<Answer, PolicyError> {
        Ok(self)
    }
}

impl IntoAnswer for Allow {
    fn into_answer(self) -> Result<Answer, PolicyError> {
        Ok(self.into())
    }
}

impl IntoAnswer for Deny {
    fn into_answer(self) -> Result<Answer, PolicyError> {
        Ok(self.into())
    }
}

impl IntoAnswer for Failure {
    fn into_answer(self) -> Result<Answer, PolicyError> {
        Ok(self.into())
    }
}

impl IntoAnswer for () {
    fn into_answer(self) -> Result<Answer, PolicyError> {
        Ok(allow().into())
    }
}

impl<T: IntoAnswer> IntoAnswer for Option<T> {
    fn into_answer(self) -> Result<Answer, PolicyError> {
        self.map_or_else(|| Ok(allow().into()), IntoAnswer::into_answer)
    }
}

impl<T: IntoAnswer, E: Display + 'static> IntoAnswer for Result<T, E> {
    fn into_answer(self) -> Result<Answer, PolicyError> {
        self.map_err(|error| PolicyError::of(&error))?.into_answer()
    }
}
