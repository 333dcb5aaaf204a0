"""The document of a policy: a part of a Kubernetes AdmissionRequest, typed and lazy.

A document has what the operator granted and the policy claimed, so every member may be missing: it is then None, like a
member that is null. (Kubernetes omits an empty ``name``, ``namespace`` and ``subResource``, and sends ``null`` for a
missing ``object``, as on DELETE.) The text is split into its members when the request is built; a member is parsed when
it is first read, and then cached. A policy may change and return what it reads; numbers keep their digits
(``admission_worker.json_text``).
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from admission_worker.errors import InvalidDocumentError
from admission_worker.json_text import decoder, json_object

_T = TypeVar("_T")

# Nesting beyond the interpreter's recursion limit raises RecursionError; the gateway rejects more than 256 levels.
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_WHOLE = ""
"""The key of the whole document among the cached members; no member of an AdmissionRequest has this name."""

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])

_HARMLESS = re.compile(
    r"Expected `[^`]*`(?:, got `[^`]*`)?|Object missing required field `[^`]*`|Object contains unknown field `[^`]*`"
)
"""The beginning of msgspec's errors that have only types and names. Others have values, which may be secret."""

_AT = re.compile(r" - (?P<place>at `[^`]*`)$")


class GroupVersionKind(msgspec.Struct, frozen=True):
    """A metav1.GroupVersionKind. The core group is ``""``."""

    group: str = ""
    version: str = ""
    kind: str = ""


class GroupVersionResource(msgspec.Struct, frozen=True):
    """A metav1.GroupVersionResource. The core group is ``""``."""

    group: str = ""
    version: str = ""
    resource: str = ""


class UserInfo(msgspec.Struct, frozen=True):
    """An authentication.k8s.io/v1 UserInfo. A field that is empty or not granted is None."""

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
        InvalidDocumentError: when built, if ``raw`` is not one JSON object; when a member is read, if it has another
            type than in an AdmissionRequest. If the policy does not catch it, its outcome is a failure.
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
        """The AdmissionRequest's uid, for logs. A verdict must not depend on it, because it differs in each call."""

    def __repr__(self) -> str:
        """Size and uid; never the content, which may be a Secret."""
        return f"<Request of {len(self.raw)} bytes, uid {self.uid!r}>"

    def _member(self, name: str, shape: type[_T]) -> _T | None:
        """A member of the document in one of the SDK's types, parsed when it is first read."""
        return self._kept(name, _reader(shape).decode)

    def _whole(self, name: str) -> dict[str, Any] | None:
        """A member without a fixed type, such as an object."""
        return self._kept(name, lambda raw: json_object(bytes(raw)))

    def _kept(self, name: str, read: Callable[[msgspec.Raw], _T | None]) -> _T | None:
        if name in self._read:
            value: _T | None = self._read[name]
            return value
        raw = self._members.get(name)
        parsed: _T | None = None
        if raw is not None:
            try:
                parsed = read(raw)
            except _UNREADABLE as error:
                message = f"the document's {name} cannot be read: {error}"
                raise InvalidDocumentError(message) from None
        self._read[name] = parsed
        return parsed

    def member_text(self, name: str) -> bytes | None:
        """A member's JSON text; None: it is missing."""
        raw = self._members.get(name)
        return None if raw is None else bytes(raw)

    def _typed(self, name: str, shape: type[_T]) -> _T | None:
        """A member of the document in an author's type, parsed each time."""
        raw = self._members.get(name)
        if raw is None:
            return None
        reader = _reader(shape)
        try:
            parsed: _T | None = reader.decode(raw)
        except _UNREADABLE as error:
            message = f"the document's {name} is no {getattr(shape, '__name__', shape)}: {_without_values(str(error))}"
            raise InvalidDocumentError(message) from None
        return parsed

    @property
    def document(self) -> dict[str, Any]:
        """The whole document in the AdmissionRequest's shape, with unknown members. Parsed once."""
        if _WHOLE not in self._read:
            try:
                self._read[_WHOLE] = json_object(self.raw)
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
        """The requested resource, in the version that the policy matched."""
        return self._member("resource", GroupVersionResource)

    @property
    def sub_resource(self) -> str | None:
        """The subresource, such as ``status`` or ``ephemeralcontainers``; None: the resource itself."""
        return self._member("subResource", str)

    @property
    def request_kind(self) -> GroupVersionKind | None:
        """The kind in the client's version (differs from ``kind`` with matchPolicy Equivalent)."""
        return self._member("requestKind", GroupVersionKind)

    @property
    def request_resource(self) -> GroupVersionResource | None:
        """The resource in the client's version."""
        return self._member("requestResource", GroupVersionResource)

    @property
    def request_sub_resource(self) -> str | None:
        """The subresource in the client's request."""
        return self._member("requestSubResource", str)

    @property
    def operation(self) -> str | None:
        """``CREATE``, ``UPDATE``, ``DELETE`` or ``CONNECT``."""
        return self._member("operation", str)

    @property
    def name(self) -> str | None:
        """The object's name. None before the API server generates it (generateName, mutating), and on a
        deletecollection.
        """
        return self._member("name", str)

    @property
    def namespace(self) -> str | None:
        """The namespace; None for cluster-scoped objects, a Namespace's own name for Namespaces."""
        return self._member("namespace", str)

    @property
    def user_info(self) -> UserInfo | None:
        """The client."""
        return self._member("userInfo", UserInfo)

    @property
    def dry_run(self) -> bool | None:
        """Whether the API server will store nothing."""
        return self._member("dryRun", bool)

    @property
    def object(self) -> dict[str, Any] | None:
        """The new object; None on DELETE."""
        return self._whole("object")

    @property
    def old_object(self) -> dict[str, Any] | None:
        """The stored object; None on CREATE and CONNECT."""
        return self._whole("oldObject")

    def object_as(self, shape: type[_T]) -> _T | None:
        """``object`` in your own type.

        Args:
            shape: a ``msgspec.Struct``, a dataclass or a TypedDict with the members that you read; others are ignored
                (unless it is a Struct with ``forbid_unknown_fields=True``).

        Returns:
            A new value each time; None without an object.

        Raises:
            InvalidDocumentError: the object has another shape; the message has the place.
            TypeError: msgspec does not support the type.
        """
        return self._typed("object", shape)

    def old_object_as(self, shape: type[_T]) -> _T | None:
        """``old_object`` in your own type, like ``object_as``."""
        return self._typed("oldObject", shape)

    @property
    def options(self) -> dict[str, Any] | None:
        """The operation's options, such as a CreateOptions; None on CONNECT."""
        return self._whole("options")

    @property
    def namespace_object(self) -> dict[str, Any] | None:
        """The object's Namespace, if the policy claims it and the gateway offers it."""
        return self._whole("namespaceObject")


def _reader(shape: Any) -> msgspec.json.Decoder[Any]:
    """A decoder of a member that may be null."""
    return _kept_reader(shape)


@lru_cache(maxsize=256)
def _kept_reader(shape: Any) -> msgspec.json.Decoder[Any]:
    return decoder(shape | None)


def _without_values(message: str) -> str:
    """Msgspec's error, without values of the document."""
    found, at = _HARMLESS.match(message), _AT.search(message)
    what = found[0] if found else "a value that it does not take"
    return f"{what} {at['place']}" if at else what
