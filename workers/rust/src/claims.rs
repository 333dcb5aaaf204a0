//! The places that a policy reads and writes: everything, a list of pointers, or not declared. The contract
//! distinguishes the three.
//!
//! A claim can only narrow what the operator granted. A policy without a claim is sent everything that was granted; an
//! empty list claims nothing. Claims that the gateway would reject are rejected here, where the author sees the error.

use crate::contract;
use crate::pointers::{checked, tokens};

/// The first segment of an input: the members of an AdmissionRequest (admission.k8s.io/v1) except `uid`, and
/// `namespaceObject`, which the gateway adds for policies that claim it.
const MEMBERS: [&str; 15] = [
    "kind",
    "resource",
    "subResource",
    "requestKind",
    "requestResource",
    "requestSubResource",
    "name",
    "namespace",
    "operation",
    "userInfo",
    "object",
    "oldObject",
    "dryRun",
    "options",
    "namespaceObject",
];

/// The places that a policy reads or writes.
///
/// A list of JSON Pointers converts into a claim: `.inputs(["/object/metadata/labels"])`; `[""; 0]`, or
/// [`Claim::nothing`], claims nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Claim {
    /// No claim: all that the operator grants.
    #[default]
    NotSaid,
    /// All places.
    Everything,
    /// These JSON Pointers; a segment `*` is every element or member.
    Pointers(Vec<String>),
}

impl Claim {
    /// No place: the operation and the kind are enough.
    #[must_use]
    pub fn nothing() -> Self {
        Self::Pointers(Vec::new())
    }

    /// Checks a claim of inputs, over the AdmissionRequest.
    pub(crate) fn of_inputs(self, what: &str) -> Result<Self, String> {
        let Self::Pointers(places) = self else { return Ok(self) };
        let pointers = checked(places, what)?;
        for place in &pointers {
            let first = tokens(place).swap_remove(0);
            if first == "uid" {
                return Err(format!("{what}: no verdict may depend on \"/uid\", which is not part of a document"));
            }
            if !MEMBERS.contains(&first.as_str()) {
                let members = MEMBERS.join(", ");
                return Err(format!("{what}: {place:?} is no place in an AdmissionRequest, which has {members}"));
            }
        }
        Ok(Self::Pointers(pointers))
    }

    /// Checks a claim of writes, over the object.
    pub(crate) fn of_writes(self, what: &str) -> Result<Self, String> {
        let Self::Pointers(places) = self else { return Ok(self) };
        let pointers = checked(places, what)?;
        for place in &pointers {
            // A change of the kind would be another object.
            if matches!(tokens(place)[0].as_str(), "apiVersion" | "kind") || place == "/*" {
                return Err(format!(
                    "{what}: {place:?} is or holds the object's kind, which cannot be changed; name other members"
                ));
            }
        }
        Ok(Self::Pointers(pointers))
    }

    /// The claim as the contract's message; None, which leaves the field unset, if there is no claim.
    pub(crate) fn message(&self) -> Option<contract::Claim> {
        use contract::claim::{Claim as Kind, Everything, Pointers};
        let claim = match self {
            Self::NotSaid => return None,
            Self::Everything => Kind::Everything(Everything {}),
            Self::Pointers(pointers) => Kind::Pointers(Pointers { pointers: pointers.clone() }),
        };
        Some(contract::Claim { claim: Some(claim) })
    }
}

impl<T: Into<String>, const N: usize> From<[T; N]> for Claim {
    fn from(places: [T; N]) -> Self {
        Self::Pointers(places.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<String>> From<Vec<T>> for Claim {
    fn from(places: Vec<T>) -> Self {
        Self::Pointers(places.into_iter().map(Into::into).collect())
    }
}
