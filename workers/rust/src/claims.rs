//! Which places a policy reads and writes: everything, exactly these, or not said. Three different things in the
//! contract.
//!
//! A claim can only narrow what the operator granted. "Not said" is sent whatever was granted; "nothing" is an empty
//! list. What the gateway would refuse is refused here, where the author sees it.

use crate::contract;
use crate::pointers::{checked, tokens};

/// What an input can begin with: the members of an AdmissionRequest (admission.k8s.io/v1) but `uid`, and the Namespace,
/// which the gateway adds for whoever names it.
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

/// Which places a policy reads or writes.
///
/// Made from a list of JSON Pointers where one is wanted: `.inputs(["/object/metadata/labels"])`; `[""; 0]`, or
/// [`Claim::nothing`], claims nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Claim {
    /// Whatever the operator grants.
    #[default]
    NotSaid,
    /// Every place there is.
    Everything,
    /// Exactly these, as JSON Pointers; a segment `*` is every element or member.
    Pointers(Vec<String>),
}

impl Claim {
    /// No place: the operation and the kind are enough.
    #[must_use]
    pub fn nothing() -> Self {
        Self::Pointers(Vec::new())
    }

    /// A claim of what a policy reads, over the AdmissionRequest; or what is wrong with it.
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

    /// A claim of what a policy changes, over the object; or what is wrong with it.
    pub(crate) fn of_writes(self, what: &str) -> Result<Self, String> {
        let Self::Pointers(places) = self else { return Ok(self) };
        let pointers = checked(places, what)?;
        for place in &pointers {
            // Another kind of object is no changed object.
            if matches!(tokens(place)[0].as_str(), "apiVersion" | "kind") || place == "/*" {
                return Err(format!(
                    "{what}: {place:?} is or holds the object's kind, which cannot be changed; name other members"
                ));
            }
        }
        Ok(Self::Pointers(pointers))
    }

    /// The claim as the contract's message; None where it is not said, which leaves the field unset.
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
