//! A denial: a metav1.Status, part by part.

use super::Notes;

/// metav1.StatusReason of a code, in Kubernetes' own pairs (k8s.io/apimachinery/pkg/apis/meta/v1/types.go).
const REASONS: [(i32, &str); 15] = [
    (400, "BadRequest"),
    (401, "Unauthorized"),
    (403, "Forbidden"),
    (404, "NotFound"),
    (405, "MethodNotAllowed"),
    (406, "NotAcceptable"),
    (409, "Conflict"),
    (410, "Gone"),
    (413, "RequestEntityTooLarge"),
    (415, "UnsupportedMediaType"),
    (422, "Invalid"),
    (429, "TooManyRequests"),
    (500, "InternalError"),
    (503, "ServiceUnavailable"),
    (504, "Timeout"),
];

/// The request must not pass. Made by [`deny`](crate::deny).
#[derive(Debug, Clone, PartialEq)]
pub struct Deny {
    pub(crate) message: String,
    pub(crate) code: i32,
    /// None: Kubernetes' reason for the code, if any.
    reason: Option<String>,
    pub(crate) causes: Vec<Cause>,
    pub(crate) details: Details,
    pub(crate) notes: Notes,
}

/// One thing that is wrong (a metav1.StatusCause).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// In Kubernetes' notation, such as `spec.containers[0].image`.
    pub field: String,
    /// For people.
    pub message: String,
    /// A metav1.CauseType such as `FieldValueRequired`.
    pub reason: String,
}

/// The resource that a denial is about (a metav1.StatusDetails without its causes). Unknown fields stay empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Details {
    /// The resource's name.
    pub name: String,
    /// Its API group.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its uid.
    pub uid: String,
    /// After how many seconds the client may try again; 0: unset.
    pub retry_after_seconds: i32,
}

impl Deny {
    pub(super) fn new(message: String) -> Self {
        let (causes, details, notes) = (Vec::new(), Details::default(), Notes::default());
        Self { message, code: 403, reason: None, causes, details, notes }
    }

    /// An HTTP status, 400 to 599, and with it Kubernetes' reason for it; outside of that the gateway sends 400, as
    /// kube-apiserver does.
    #[must_use]
    pub fn code(mut self, code: i32) -> Self {
        self.code = code;
        self
    }

    /// A metav1.StatusReason other than the one that Kubernetes pairs with the code.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Adds a cause, for machines.
    #[must_use]
    pub fn cause(mut self, cause: Cause) -> Self {
        self.causes.push(cause);
        self
    }

    /// Adds causes.
    #[must_use]
    pub fn causes(mut self, causes: impl IntoIterator<Item = Cause>) -> Self {
        self.causes.extend(causes);
        self
    }

    /// The resource that the denial is about, and when to try again.
    #[must_use]
    pub fn details(mut self, details: Details) -> Self {
        self.details = details;
        self
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The causes, for tests.
    #[must_use]
    pub fn all_causes(&self) -> &[Cause] {
        &self.causes
    }

    /// The reason that is sent: the one that was set, or else Kubernetes' for the code; empty if it has none.
    pub(crate) fn sent_reason(&self) -> &str {
        let paired = || REASONS.iter().find(|(code, _)| *code == self.code).map_or("", |(_, reason)| reason);
        self.reason.as_deref().unwrap_or_else(paired)
    }
}

impl Cause {
    /// An invalid value (`FieldValueInvalid`).
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into(), reason: "FieldValueInvalid".to_owned() }
    }

    /// Another metav1.CauseType.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }
}
