"""The document that a policy judges: a part of a Kubernetes AdmissionRequest, typed and lazy.

A document holds what the operator granted and the policy claimed, so every member may be missing: then it reads None,
like a member that is null. (Kubernetes leaves ``name``, ``namespace`` and ``subResource`` out when they are empty, and
sends ``null`` for an ``object`` that there is not, as on DELETE.) The text is split into its members once, when the
request is built; a member is parsed when it is first read, and then kept. What is read belongs to the policy: it may
be changed and returned.
"""

from typing import Any, TypeVar

import msgspec

from admission_worker.errors import InvalidDocumentError

_T = TypeVar("_T")

# Nesting deeper than the interpreter's recursion limit shows as RecursionError; the gateway refuses it at 256 already.
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_WHOLE = ""
"""Where the whole document is kept among the members that have been read; no member of an AdmissionRequest is called
so."""

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class GroupVersionKind(msgspec.Struct, frozen=True):
    """A metav1.GroupVersionKind: which kind of object. The core group is ``""``."""

    group: str = ""
    version: str = ""
    kind: str = ""


class GroupVersionResource(msgspec.Struct, frozen=True):
    """A metav1.GroupVersionResource: which resource is asked for. The core group is ``""``."""

    group: str = ""
    version: str = ""
    resource: str = ""


class UserInfo(msgspec.Struct, frozen=True):
    """An authentication.k8s.io/v1 UserInfo: who asks. A field that is empty, or was not granted, is None."""

    username: str | None = None
    uid: str | None = None
    groups: tuple[str, ...] | None = None
    extra: dict[str, tuple[str, ...]] | None = None


class Request:
    """One document, read lazily.

    Args:
        raw: the document's JSON text, a JSON object in UTF-8.
        uid: the AdmissionRequest's uid, for logs.

    Raises:
        InvalidDocumentError: when built, if ``raw`` is not one JSON object; when a member is read, if it is not what an
            AdmissionRequest holds there. A policy that lets it pass answers a failure.
    """

    __slots__ = ("_members", "_read", "raw", "uid")

    def __init__(self, raw: bytes, *, uid: str = "") -> None:
        try:
            self._members = _MEMBERS.decode(raw)
        except _UNREADABLE as error:
            message = f"the document is not one JSON object: {error}"
            raise InvalidDocumentError(message) from None
        self._read: dict[str, Any] = {}
        self.raw = raw
        """The document's JSON text, as it was sent."""
        self.uid = uid
        """The AdmissionRequest's uid, for logs. A verdict must not depend on it: it differs in each call."""

    def __repr__(self) -> str:
        """How large and for which log line; never the content, which may be a Secret."""
        return f"<Request of {len(self.raw)} bytes, uid {self.uid!r}>"

    def _member(self, name: str, shape: type[_T]) -> _T | None:
        """A member of the document in its shape, parsed when first asked for."""
        if name in self._read:
            value: _T | None = self._read[name]
            return value
        raw = self._members.get(name)
        parsed: _T | None = None
        if raw is not None:
            try:
                parsed = msgspec.json.decode(raw, type=shape | None)
            except _UNREADABLE as error:
                message = f"the document's {name} cannot be read: {error}"
                raise InvalidDocumentError(message) from None
        self._read[name] = parsed
        return parsed

    @property
    def document(self) -> dict[str, Any]:
        """The whole document, in the AdmissionRequest's own shape; unknown members included. Parsed once."""
        if _WHOLE not in self._read:
            try:
                self._read[_WHOLE] = msgspec.json.decode(self.raw, type=dict[str, Any])
            except _UNREADABLE as error:
                message = f"the document cannot be read: {error}"
                raise InvalidDocumentError(message) from None
        whole: dict[str, Any] = self._read[_WHOLE]
        return whole

    @property
    def kind(self) -> GroupVersionKind | None:
        """The kind of ``object``: for a subresource its own, such as Scale or Eviction."""
        return self._member("kind", GroupVersionKind)

    @property
    def resource(self) -> GroupVersionResource | None:
        """The resource that is asked for, in the version that the policy matched."""
        return self._member("resource", GroupVersionResource)

    @property
    def sub_resource(self) -> str | None:
        """The subresource, such as ``status`` or ``ephemeralcontainers``; None: the resource itself."""
        return self._member("subResource", str)

    @property
    def request_kind(self) -> GroupVersionKind | None:
        """The kind in the version in which the client asked (differs from ``kind`` under matchPolicy Equivalent)."""
        return self._member("requestKind", GroupVersionKind)

    @property
    def request_resource(self) -> GroupVersionResource | None:
        """The resource in the version in which the client asked."""
        return self._member("requestResource", GroupVersionResource)

    @property
    def request_sub_resource(self) -> str | None:
        """The subresource as the client asked."""
        return self._member("requestSubResource", str)

    @property
    def operation(self) -> str | None:
        """``CREATE``, ``UPDATE``, ``DELETE`` or ``CONNECT``."""
        return self._member("operation", str)

    @property
    def name(self) -> str | None:
        """The object's name. None where the API server makes it (generateName, mutating), and on a deletecollection."""
        return self._member("name", str)

    @property
    def namespace(self) -> str | None:
        """The namespace; None for cluster-scoped objects, a Namespace's own name for Namespaces."""
        return self._member("namespace", str)

    @property
    def user_info(self) -> UserInfo | None:
        """Who asks."""
        return self._member("userInfo", UserInfo)

    @property
    def dry_run(self) -> bool | None:
        """Whether nothing will be stored."""
        return self._member("dryRun", bool)

    @property
    def object(self) -> dict[str, Any] | None:
        """The object as it would be stored; None on DELETE."""
        return self._member("object", dict[str, Any])

    @property
    def old_object(self) -> dict[str, Any] | None:
        """The object as it is stored; None on CREATE and CONNECT."""
        return self._member("oldObject", dict[str, Any])

    @property
    def options(self) -> dict[str, Any] | None:
        """The operation's options, such as a CreateOptions; None on CONNECT."""
        return self._member("options", dict[str, Any])

    @property
    def namespace_object(self) -> dict[str, Any] | None:
        """The Namespace in which the object is, where the gateway offers it."""
        return self._member("namespaceObject", dict[str, Any])
