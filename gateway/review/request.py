"""The AdmissionReview that the gateway receives, decoded lazily.

An AdmissionRequest (admission.k8s.io/v1 and v1beta1, the same fields) is kept as its members' own bytes, in their own
order, including unknown members. Small members are decoded when the review arrives, because matching always reads them.
The large ones (``object``, ``oldObject``, ``options``) are decoded when their value is first read. Mostly it never is:
documents copy the API server's bytes.

What a value becomes is bounded, not only its bytes: 3 MB of ``[]`` are two million values, 130 MB and a sixth of a
second, and a number may cost as much as many values (``gateway.depth``). They are counted before anything is parsed. A
review with more than ``READABLE_VALUES`` is decoded, but its large members cannot be read (``UnreadError``), nor can a
member of more than ``READABLE_BYTES``: a policy that needs a part of them fails by its failurePolicy, one that is sent
them whole does not. ``decoding`` lets an event loop do other work in between.

What kube-apiserver sends:

* Absent, not empty or null, when empty: ``name``, ``namespace``, ``subResource``, ``requestSubResource``,
  ``userInfo.uid`` and ``userInfo.extra``. ``object``, ``oldObject`` and ``options`` are a literal ``null`` when there
  is none.
* ``name`` is absent on a create with generateName (mutating) and on each call of a deletecollection.
* ``namespace`` of a Namespace is its own name, although it is cluster-scoped.

Duplicate keys: the last one wins, as in the API server's own decoder.
"""

import gc
from collections.abc import Generator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from gateway.bounds import READABLE_VALUES
from gateway.depth import Survey, has_long_number, light_survey, may_be_too_deep, most_values, surveyed
from gateway.json_values import VALUES
from gateway.reasons import Reason
from gateway.slices import finished

API_VERSIONS: Final = ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")
OPERATIONS: Final = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})
DEPTH: Final = 256
"""How deep a review may nest. Kubernetes' deepest type, a CRD's schema, allows less than 200; JSON Schema is the only
recursive type. The limit is below Python's recursion limit of 1000, so that no later step can exceed that."""

LIGHT_VALUES: Final = 20_000
"""Values of a review that is read in one piece: some 2 ms of work. Almost all reviews have fewer; a pod has 200."""

MOST_VALUES: Final = 4_000_000
"""Values, and names of members, of a review that is decoded at all: a request of 3 MiB, the API server's limit, of
``[],`` has two million; the old object, as it is stored, one. Above it, to copy the members takes more than 20 ms."""

READABLE_BYTES: Final = 9_437_184
"""Bytes of a member that can be read. To parse a text of escapes or of emoji takes 4 ns for each: 35 ms, in one call.
etcd stores 1.5 MiB at most, and in JSON each byte of it can be six: ``\\u003c``."""

BYTES_OF_VALUE: Final = 256
"""Bytes of a review that are charged as one value more. So one of 5 MB is not light, whatever it holds: its UTF-8 takes
10 ms, its members 10, its value 20, its document and the digest of that 10."""

_ALWAYS_READABLE: Final = 4096
"""Bytes of a member that can be read in every review: ``userInfo``, ``options``, ``null``."""

_LIGHT_BYTES: Final = 65_536
"""A body that is counted in one piece: 0.1 ms."""

_COUNTED_BYTES: Final = 1_048_576
"""What is counted, or verified to be UTF-8, in one piece of a larger one: at most 5 ms."""

_CONTINUATION: Final = range(0x80, 0xC0)
"""Bytes of UTF-8 that begin no character."""

_NULL: Final = b"null"
_T = TypeVar("_T")
_D = TypeVar("_D")


class GroupVersionKind(msgspec.Struct, frozen=True, kw_only=True):
    """metav1.GroupVersionKind; the core group is the empty string."""

    group: str = ""
    version: str
    kind: str


class ReviewError(Exception):
    """The body is not a valid AdmissionReview: HTTP 400, since without a uid no review can be answered.

    ``str(error)`` has what was expected and what was found, in one line, and never quotes the body: it may be a Secret.
    """


class TooDeepError(ReviewError):
    """The body nests deeper than is permitted."""


class TooManyValuesError(ReviewError):
    """The body has more values than ``MOST_VALUES``."""


class UnreadError(ReviewError):
    """A member is not parsed, because it, or all that is in memory, is too large: a failure ``reason`` of each policy
    that needs it. ``str(error)`` names the limit and the next step.
    """

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class GroupVersionResource(msgspec.Struct, frozen=True, kw_only=True):
    """metav1.GroupVersionResource; the core group is the empty string."""

    group: str = ""
    version: str
    resource: str


class UserInfo(msgspec.Struct, frozen=True, kw_only=True):
    """authentication.k8s.io/v1 UserInfo: the user who sent the request to the API server."""

    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class _Envelope(msgspec.Struct, rename="camel"):
    api_version: str | None = None
    kind: str | None = None
    request: dict[str, msgspec.Raw] | None = None


_envelope: Final = msgspec.json.Decoder(_Envelope)
_string: Final = msgspec.json.Decoder(str)
_optional_string: Final = msgspec.json.Decoder(str | None)
_boolean: Final = msgspec.json.Decoder(bool | None)
_kind: Final = msgspec.json.Decoder(GroupVersionKind)
_resource: Final = msgspec.json.Decoder(GroupVersionResource)
_optional_kind: Final = msgspec.json.Decoder(GroupVersionKind | None)
_optional_resource: Final = msgspec.json.Decoder(GroupVersionResource | None)
_user_info: Final = msgspec.json.Decoder(UserInfo | None)

_UNREAD: Final = object()

_READ_ALWAYS: Final[tuple[tuple[str, str, "msgspec.json.Decoder[Any]", Any], ...]] = (
    ("uid", "uid", _string, ""),
    ("kind", "kind", _kind, None),
    ("resource", "resource", _resource, None),
    ("operation", "operation", _string, None),
    ("sub_resource", "subResource", _optional_string, ""),
    ("name", "name", _optional_string, ""),
    ("namespace", "namespace", _optional_string, ""),
    ("dry_run", "dryRun", _boolean, False),
)
"""Attribute, member, decoder, and the value of an absent or null member; None: the member is required. The uid comes
first: its error takes precedence."""


class Request:
    """One AdmissionRequest, and apiVersion and ``size`` in bytes of the review that carried it; 0: none did.

    ``members`` are the request's members as JSON bytes, in the request's order. Each property raises ReviewError if its
    member does not have Kubernetes' type. ``values``: what the review is charged, an upper bound of its values and a
    part of its bytes. ``unread``: what is raised where a large member is read for the first time; None: it is read.
    """

    __slots__ = (
        "_object",
        "_old_object",
        "api_version",
        "dry_run",
        "kind",
        "members",
        "name",
        "namespace",
        "operation",
        "resource",
        "size",
        "sub_resource",
        "uid",
        "unread",
        "values",
    )
    uid: str
    kind: GroupVersionKind
    resource: GroupVersionResource
    operation: str
    sub_resource: str
    name: str
    namespace: str
    dry_run: bool

    def __init__(
        self,
        api_version: str,
        members: Mapping[str, msgspec.Raw],
        *,
        size: int = 0,
        values: int = 0,
        readable: int = READABLE_VALUES,
    ) -> None:
        self.api_version = api_version
        self.size = size
        self.values = values + size // BYTES_OF_VALUE
        self.unread = _too_many(values, readable) if values > readable else None
        self.members = members
        self._object: Any = _UNREAD
        self._old_object: Any = _UNREAD
        for attribute, name, decoder, absent in _READ_ALWAYS:
            raw = members.get(name)
            try:
                value = None if raw is None else decoder.decode(raw)
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                raise _unreadable(name, error) from None
            if value is None and absent is None:
                raise ReviewError(f"request.{name} is missing: this is no AdmissionRequest")
            if not value and name == "uid":
                raise ReviewError(
                    "request.uid is missing or empty: without it there is no answer that kube-apiserver accepts"
                )
            setattr(self, attribute, absent if value is None else value)
        if self.operation not in OPERATIONS:
            raise ReviewError(f"request.operation is not one of {', '.join(sorted(OPERATIONS))}")

    def text(self, name: str) -> msgspec.Raw | None:
        """The JSON text of a top-level member that is going to be parsed; None if it is absent.

        Raises:
            UnreadError: it must not be.
        """
        raw = self.members.get(name)
        if raw is not None and len(raw) > _ALWAYS_READABLE:
            if self.unread is not None:
                raise self.unread
            if len(raw) > READABLE_BYTES:
                raise _too_long(name, len(raw))
        return raw

    def _member(self, name: str, decoder: "msgspec.json.Decoder[_T]", default: _D) -> _T | _D:
        raw = self.text(name)
        if raw is None:
            return default
        try:
            return decoder.decode(raw)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise _unreadable(name, error) from None

    def raw(self, name: str) -> bytes | None:
        """The JSON text of a top-level member, exactly as received; None if it is absent."""
        raw = self.members.get(name)
        return None if raw is None else bytes(raw)

    @property
    def object(self) -> Any:
        """The decoded ``object``: a dict, or None on DELETE. It is the same value each time and must not be mutated."""
        if self._object is _UNREAD:
            self._object = self._container("object")
        return self._object

    @property
    def old_object(self) -> Any:
        """The decoded ``oldObject``: a dict, or None on CREATE and CONNECT. It must not be mutated."""
        if self._old_object is _UNREAD:
            self._old_object = self._container("oldObject")
        return self._old_object

    @property
    def is_parsed(self) -> bool:
        """Whether ``object`` or ``old_object`` has been read, so that its value is in memory too."""
        return self._object is not _UNREAD or self._old_object is not _UNREAD

    def _container(self, name: str) -> Any:
        raw = self.text(name)
        # Parsing makes no garbage, but half of a large text's time would go into looking for it.
        collects = raw is not None and len(raw) > _LIGHT_BYTES and gc.isenabled()
        if collects:
            gc.disable()
        try:
            value = None if raw is None else VALUES.decode(raw)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise _unreadable(name, error) from None
        finally:
            if collects:
                gc.enable()
        if value is not None and not isinstance(value, dict):
            raise ReviewError(f"request.{name} is neither a JSON object nor null")
        return value

    @property
    def options(self) -> Any:
        """The decoded ``options``, such as a CreateOptions: a dict, or None on CONNECT."""
        return self._container("options")

    @property
    def request_kind(self) -> GroupVersionKind:
        """The kind of the client's own request, before conversion; ``kind`` if ``requestKind`` is absent."""
        return self._member("requestKind", _optional_kind, None) or self.kind

    @property
    def request_resource(self) -> GroupVersionResource:
        """The resource of the client's own request, before conversion; ``resource`` if that is absent."""
        return self._member("requestResource", _optional_resource, None) or self.resource

    @property
    def request_sub_resource(self) -> str:
        """The subresource of the client's own request; ``subResource`` if ``requestSubResource`` is absent."""
        return self._member("requestSubResource", _optional_string, None) or self.sub_resource

    @property
    def user_info(self) -> UserInfo:
        """The user who sent the request to the API server."""
        return self._member("userInfo", _user_info, None) or UserInfo()


def _unreadable(name: str, error: Exception) -> ReviewError:
    return ReviewError(f"request.{name} cannot be read: {error}")


def _too_long(name: str, size: int) -> UnreadError:
    return UnreadError(
        Reason.REQUEST_TOO_LARGE,
        f"request.{name} has {size} bytes, and the limit for a policy that reads parts of it is {READABLE_BYTES}; make "
        "the object smaller, or split it",
    )


def _too_many(values: int, readable: int) -> UnreadError:
    return UnreadError(
        Reason.REQUEST_TOO_LARGE,
        f"the AdmissionReview has {values} JSON values and names, and the limit for a policy that reads parts of it is "
        f"{readable}; make the object smaller, or split it",
    )


def decode(body: bytes, *, depth: int = DEPTH, readable: int = READABLE_VALUES) -> Request:
    """Read an AdmissionReview.

    Args:
        body: one JSON text in UTF-8, at most as large as the listener accepts.
        depth: how deep it may nest.
        readable: how many values it may have for its large members to be read.

    Returns:
        The request. The members that matching always reads have been checked.

    Raises:
        ReviewError: empty, not UTF-8, not JSON, too deep, not a review, of an unknown version, without request or uid.
        TooManyValuesError: so many that not even the members are told apart.
    """
    if is_light(body):
        _verify(body)
        return _decoded(body, light_survey(body, depth), depth, readable)
    return finished(decoding(body, depth=depth, readable=readable))


def is_light(body: bytes) -> bool:
    """Whether this body is decoded in one piece. (A larger one may be as well, which its values decide.)"""
    return len(body) <= _LIGHT_BYTES


def decoding(body: bytes, *, depth: int = DEPTH, readable: int = READABLE_VALUES) -> Generator[None, None, Request]:
    """The same as ``decode``, in slices of a few milliseconds: yields after each. (The members are separated in one:
    35 ms for 20 MB of escapes.)
    """
    charge = _first_charge(body)
    if charge <= LIGHT_VALUES and (len(body) <= _COUNTED_BYTES or not may_be_too_deep(body, depth)):
        _verify(body)
        return _decoded(body, light_survey(body, depth), depth, readable)
    yield
    survey = yield from surveyed(body, depth)
    if survey.values > MOST_VALUES:
        raise TooManyValuesError(
            f"{Reason.REQUEST_TOO_LARGE}: this AdmissionReview has {survey.values} JSON values and names, the limit is "
            f"{MOST_VALUES}; make the object smaller, or split it"
        )
    start = 0
    while start < len(body):
        end = start + _COUNTED_BYTES
        # A character, which has four bytes at most, is not cut apart.
        while end > start + _COUNTED_BYTES - 4 and body[end : end + 1] and body[end] in _CONTINUATION:
            end -= 1
        _verify(body[start:end], start)
        start = end
        yield
    return _decoded(body, survey, depth, readable)


def _first_charge(body: bytes) -> int:
    """An upper bound of what a body is charged; of one that is not light, of its beginning."""
    charge = len(body) // BYTES_OF_VALUE
    for start in range(0, len(body), _COUNTED_BYTES):
        if charge > LIGHT_VALUES:
            break
        piece = body[start : start + _COUNTED_BYTES]
        charge += len(body) if has_long_number(piece) else most_values(piece)
    return charge


def _verify(text: bytes, start: int = 0) -> None:
    """Raise a ReviewError if a text, which begins at the byte ``start`` of a body, is not UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise ReviewError(f"the body is not UTF-8: byte {start + error.start} {error.reason}") from None


def _decoded(body: bytes, survey: Survey, depth: int, readable: int) -> Request:
    if not body:
        raise ReviewError("the body is empty; POST an AdmissionReview")
    if survey.too_deep:
        raise TooDeepError(f"the body nests deeper than {depth} levels")
    try:
        envelope = _envelope.decode(body)
    except msgspec.ValidationError as error:
        raise ReviewError(f"the body is JSON, but not an AdmissionReview: {error}") from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ReviewError(f"the body is not JSON: {error}") from None
    if envelope.kind != "AdmissionReview":
        raise ReviewError("the body is not an AdmissionReview: its kind is another one, or missing")
    if envelope.api_version not in API_VERSIONS:
        raise ReviewError(f"the AdmissionReview's apiVersion is not one of {', '.join(API_VERSIONS)}")
    if envelope.request is None:
        raise ReviewError("the AdmissionReview has no request")
    return Request(envelope.api_version, envelope.request, size=len(body), values=survey.values, readable=readable)
