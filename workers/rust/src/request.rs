//! A policy's document: the granted and claimed parts of a Kubernetes AdmissionRequest, typed.
//!
//! Any member can be missing; then it is None, like a member that is null. (Kubernetes omits `name`, `namespace` and
//! `subResource` if they are empty, and sends `null` for a missing `object`, as on DELETE.) The small members are parsed
//! when the request is built; objects when the policy reads them, in the type that it chooses.

use std::fmt::{self, Debug, Display, Formatter};
use std::sync::Arc;

use bytes::Bytes;
use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::json::Json;

/// The document is not JSON, or a member has another type than in an AdmissionRequest, or than the policy expects.
///
/// An error of the gateway, or of a policy that reads the wrong type. The text is safe to show: it contains names and
/// types, never values. A policy may return it (`?`), which makes its outcome a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidDocument(String);

impl InvalidDocument {
    pub(crate) fn new(message: String) -> Self {
        Self(message)
    }
}

impl Display for InvalidDocument {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for InvalidDocument {}

/// A metav1.GroupVersionKind: which kind of object. The core group is `""`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct GroupVersionKind {
    /// The API group.
    pub group: String,
    /// Its version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

/// A metav1.GroupVersionResource: which resource is requested. The core group is `""`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct GroupVersionResource {
    /// The API group.
    pub group: String,
    /// Its version.
    pub version: String,
    /// The resource, in the plural.
    pub resource: String,
}

/// An authentication.k8s.io/v1 UserInfo: the user who makes the request. A field that is empty, or was not granted, is
/// None.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct UserInfo {
    /// The name.
    pub username: Option<String>,
    /// The user's own uid.
    pub uid: Option<String>,
    /// The groups.
    pub groups: Option<Vec<String>>,
    /// Further attributes from the authenticator.
    pub extra: Option<IndexMap<String, Vec<String>>>,
}

/// The request that a policy judges. Clones share its content.
#[derive(Clone)]
pub struct Request(Arc<Parts>);

struct Parts {
    raw: Bytes,
    uid: String,
    cancelled: CancellationToken,
    members: IndexMap<String, Bytes>,
    head: Head,
}

#[derive(Default)]
struct Head {
    operation: Option<String>,
    kind: Option<GroupVersionKind>,
    resource: Option<GroupVersionResource>,
    sub_resource: Option<String>,
    request_kind: Option<GroupVersionKind>,
    request_resource: Option<GroupVersionResource>,
    request_sub_resource: Option<String>,
    name: Option<String>,
    namespace: Option<String>,
    user_info: Option<UserInfo>,
    dry_run: Option<bool>,
}

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(&self) -> Option<&str> {
            self.0.head.$name.as_deref()
        }
    )*};
}

macro_rules! values {
    ($($(#[$doc:meta])* $name:ident: $type:ty)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(&self) -> Option<&$type> {
            self.0.head.$name.as_ref()
        }
    )*};
}

macro_rules! objects {
    ($($(#[$doc:meta])* $name:ident = $member:literal)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// The member is not a `T`; a policy may return the error (`?`), which makes its outcome a failure.
        pub fn $name<T: DeserializeOwned>(&self) -> Result<Option<T>, InvalidDocument> {
            self.member($member)
        }
    )*};
}

impl Request {
    /// A request from a document's JSON text, one object in UTF-8, and the uid for logs.
    pub(crate) fn new(raw: Bytes, uid: String, cancelled: CancellationToken) -> Result<Self, InvalidDocument> {
        let members = members_of(&raw)?;
        let head = Head {
            operation: read(&members, "operation")?,
            kind: read(&members, "kind")?,
            resource: read(&members, "resource")?,
            sub_resource: read(&members, "subResource")?,
            request_kind: read(&members, "requestKind")?,
            request_resource: read(&members, "requestResource")?,
            request_sub_resource: read(&members, "requestSubResource")?,
            name: read(&members, "name")?,
            namespace: read(&members, "namespace")?,
            user_info: read(&members, "userInfo")?,
            dry_run: read(&members, "dryRun")?,
        };
        Ok(Self(Arc::new(Parts { raw, uid, cancelled, members, head })))
    }

    texts! {
        /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
        operation
        /// The subresource, such as `status` or `ephemeralcontainers`; None for the resource itself.
        sub_resource
        /// The subresource of the original API request.
        request_sub_resource
        /// The object's name. None if the API server generates it (generateName, mutating), and on a deletecollection.
        name
        /// The namespace; None for cluster-scoped objects, a Namespace's own name for Namespaces.
        namespace
    }

    values! {
        /// The kind of the object: for a subresource its own, such as Scale or Eviction.
        kind: GroupVersionKind
        /// The requested resource, in the version that the policy matched.
        resource: GroupVersionResource
        /// The kind of the original API request (differs from `kind` under matchPolicy Equivalent).
        request_kind: GroupVersionKind
        /// The resource of the original API request.
        request_resource: GroupVersionResource
        /// The user who makes the request.
        user_info: UserInfo
    }

    objects! {
        /// The object as it would be stored, in the author's type: a struct with the members that matter,
        /// `k8s_openapi::api::core::v1::Pod`, or [`Json`]. None on DELETE and mostly on CONNECT.
        object = "object"
        /// The object as it is stored. None on CREATE.
        old_object = "oldObject"
        /// The operation's options, such as a metav1.CreateOptions.
        options = "options"
        /// The Namespace (its name and labels), for a policy that claims `/namespaceObject`.
        namespace_object = "namespaceObject"
    }

    /// Whether the request is a dry run, which stores nothing.
    #[must_use]
    pub fn dry_run(&self) -> Option<bool> {
        self.0.head.dry_run
    }

    /// A member by its name in the AdmissionRequest, unknown ones included.
    ///
    /// # Errors
    /// The member is not a `T`.
    pub fn member<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, InvalidDocument> {
        read(&self.0.members, name)
    }

    /// The whole document.
    ///
    /// # Errors
    /// The document is nested too deeply.
    pub fn document(&self) -> Result<Json, InvalidDocument> {
        serde_json::from_slice(&self.0.raw).map_err(|error| InvalidDocument(format!("the document: {error}")))
    }

    /// The document's JSON text as it was sent.
    #[must_use]
    pub fn raw(&self) -> &Bytes {
        &self.0.raw
    }

    /// The AdmissionRequest's uid, for logs. A verdict must not depend on it: it differs in each request.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.0.uid
    }

    /// Cancelled when the gateway no longer waits for the answer. The policy's future is dropped then; the token is for
    /// work that it has started elsewhere (another task, a thread).
    #[must_use]
    pub fn cancelled(&self) -> &CancellationToken {
        &self.0.cancelled
    }
}

/// The size and uid; never the content, which may be a Secret.
impl Debug for Request {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "Request of {} bytes, uid {:?}", self.0.raw.len(), self.0.uid)
    }
}

/// The texts of a document's members. Of two with the same name the last one wins, as in the API server.
fn members_of(raw: &Bytes) -> Result<IndexMap<String, Bytes>, InvalidDocument> {
    let members: IndexMap<String, &RawValue> = serde_json::from_slice(raw).map_err(|error| {
        let what = if error.is_data() { "another JSON value" } else { "no JSON" };
        let (line, column) = (error.line(), error.column());
        InvalidDocument(format!("the document is not one JSON object: {what} at line {line} column {column}"))
    })?;
    Ok(members.into_iter().map(|(name, text)| (name, raw.slice_ref(text.get().as_bytes()))).collect())
}

fn read<T: DeserializeOwned>(members: &IndexMap<String, Bytes>, name: &str) -> Result<Option<T>, InvalidDocument> {
    let Some(text) = members.get(name) else { return Ok(None) };
    let mut source = serde_json::Deserializer::from_slice(text);
    serde_path_to_error::deserialize(&mut source).map_err(|error| {
        // serde's own message quotes the value, which may be a Secret.
        let place = error.path().to_string();
        let place = if place == "." { name.to_owned() } else { format!("{name}.{place}") };
        let (line, column) = (error.inner().line(), error.inner().column());
        let wanted = std::any::type_name::<T>();
        InvalidDocument(format!(
            "the document's {place} (line {line} column {column} of {name}) is not what {wanted} holds there"
        ))
    })
}
