"""What of a reviewed request may be shown after its review: in logs, in explanations, on the dashboard, in recordings.

Three rules, from the widest to the strictest:

1. **Inputs.** Of ``object``, ``oldObject``, ``options`` and every other member, only what is included in the inputs of
   a policy that received a document of this review. Who sent the request, and the resource, are always shown
   (``IDENTITY``).
2. **Secrets.** Of a Secret in any version, only ``apiVersion``, ``kind``, ``type``, ``immutable`` and ``metadata`` are
   shown, and the keys of ``data`` and ``stringData``. Every other value is ``HIDDEN``, and so is every annotation's:
   ``kubectl.kubernetes.io/last-applied-configuration`` has the whole object, and others have copies of it in other
   forms. The tokens in TokenReview and TokenRequest are hidden, too.
3. **Texts about a Secret.** A policy that received a hidden value may write it into its message, in any form; and so
   may every policy after it, which sees the changes of that one. So texts of these policies are ``HIDDEN_TEXT``. A
   policy whose inputs leave the values out keeps its texts: ``inputs: [/object/metadata/labels]``. What else is derived
   from answers about a Secret (the paths of patches) is searched for the values themselves: ``Redaction.scrubbed``.

What remains is what a verdict says by itself: whether a policy denied, and how many fields it changed.

Everything here is pure, and does nothing until it is called: it is made for a decision that is shown.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

from gateway.engine.decision import Decision
from gateway.engine.field_changes import is_secret
from gateway.engine.invocation_record import InvocationRecord
from gateway.review.request import Request
from gateway.scopes.inputs import OBJECT, Inputs
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.projection import NOTHING, shown_part

HIDDEN: Final = "(hidden)"
"""Replaces a hidden value."""

HIDDEN_TEXT: Final = "(hidden: a policy that received the Secret's values may have written them here)"
"""Replaces a text by a policy that received hidden values."""

OLD_OBJECT: Final = "oldObject"

IDENTITY: Final = frozenset(
    {
        "uid",
        "kind",
        "resource",
        "subResource",
        "requestKind",
        "requestResource",
        "requestSubResource",
        "name",
        "namespace",
        "operation",
        "dryRun",
    }
)
"""The members of a request that are always shown; and ``USER`` of ``userInfo``."""

USER: Final = (("username",), ("uid",), ("groups",))

SHORTEST: Final = 4
"""Characters of a value that is searched for in other texts: a shorter one stands in many of them by chance."""

_OBJECT_IDENTITY: Final = (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"))
"""Of the object, what the request's own members say as well."""

_PUBLIC: Final = frozenset({"apiVersion", "kind", "type", "immutable", "metadata"})
_KEYED: Final = frozenset({"data", "stringData"})
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

_TOKENS: Final[Mapping[tuple[str, str], tuple[str, str]]] = {
    ("authentication.k8s.io", "TokenReview"): ("spec", "token"),
    ("authentication.k8s.io", "TokenRequest"): ("status", "token"),
}

_decode: Final = msgspec.json.Decoder().decode


class Redaction:
    """What may be shown of one decision.

    Args:
        request: the one that was reviewed.
        calls: the decision's records, in order. Those that received a document count.
        also: places over the request that are shown besides; a recording has what else the verdicts depend on.
    """

    def __init__(
        self, request: Request, calls: Sequence[InvocationRecord], also: Sequence[tuple[str, ...]] = ()
    ) -> None:
        self._request = request
        self._received = tuple(call for call in calls if call.document_key)
        self._calls = tuple(calls)
        self._inputs = _union([call.inputs for call in self._received], also)
        self.secret: Final = is_secret(request)
        self._token = _TOKENS.get((request.kind.group, request.kind.kind))

    @classmethod
    def of(cls, decision: Decision) -> "Redaction":
        """That of a decision."""
        return cls(decision.request, decision.calls)

    # --------------------------------------------------------------------------------------------------- values

    def request(self) -> dict[str, Any]:
        """The AdmissionRequest as far as it is shown: a JSON object of its members, in their order, decoded.

        Raises:
            ReviewError: a member that is shown in part cannot be read.
        """
        members: dict[str, Any] = {}
        for name, text in self._request.members.items():
            value = self.member(name, text)
            if value is not NOTHING:
                members[name] = value
        return members

    def member(self, name: str, text: msgspec.Raw) -> Any:
        """One member of the request, decoded, as far as it is shown; ``NOTHING`` if it is not."""
        if name == OBJECT:
            return self.object(self._request.object)
        if name == OLD_OBJECT:
            return self.object(self._request.old_object, OLD_OBJECT)
        if name in IDENTITY:
            return _decode(text)
        places = self._inputs.shown(name)
        if name == "userInfo":
            places = PointerSet((*USER, *(() if places is None else places.pointers)))
        return NOTHING if places is None else shown_part(_decode(text), places)

    def shows_whole(self, name: str) -> bool:
        """Whether a member of the request is shown as it is."""
        if name in IDENTITY:
            return True
        if name in {OBJECT, OLD_OBJECT} and (self.secret or self._token is not None):
            return False
        places = self._inputs.shown(name)
        return places is not None and places.whole

    def object(self, value: Any, member: str = OBJECT) -> Any:
        """An object of this review, such as the final one (``Decision.object``), as far as it is shown.

        Args:
            value: the decoded object; it is not mutated. None, which no object is, stays None.
            member: ``object`` or ``oldObject``: each has its own inputs.

        Returns:
            A new value that shares what is shown whole with ``value``. Arrays keep their lengths and positions, so that
            the pointers of ``field_changes`` lead to the same fields; an element that is not shown is empty or null.
        """
        shown = self._masked(self._projected(value, member))
        if self._reading and member == OBJECT and value is not self._request.object:
            # The changes of policies that received hidden values.
            return _written_hidden(shown, self.object(self._request.object))
        return shown

    def _projected(self, value: Any, member: str) -> Any:
        if value is None:
            return None
        places = self._inputs.shown(member)
        return shown_part(value, PointerSet((*_OBJECT_IDENTITY, *(() if places is None else places.pointers))))

    def _masked(self, value: Any) -> Any:
        if type(value) is not dict:
            return value
        if self.secret:
            return {name: _masked_member(name, member) for name, member in value.items()}
        if self._token is not None:
            outer, inner = self._token
            if type(value.get(outer)) is dict and inner in value[outer]:
                return {**value, outer: {**value[outer], inner: HIDDEN}}
        return value

    @cached_property
    def whole(self) -> bool:
        """Whether no value that a policy received is hidden: the request as shown has the same verdicts."""
        return not self._reading

    # ---------------------------------------------------------------------------------------------------- texts

    @cached_property
    def _reading(self) -> frozenset[int]:
        """The places in ``calls`` of the first policy that received a hidden value, and of all after it."""
        if not self.secret and self._token is None:
            return frozenset()
        for place, call in enumerate(self._calls):
            if call.document_key and self._hides_from(call.inputs):
                return frozenset(range(place, len(self._calls)))
        return frozenset()

    def _hides_from(self, inputs: Inputs) -> bool:
        for member, value in ((OBJECT, self._request.object), (OLD_OBJECT, self._request.old_object)):
            places = inputs.shown(member)
            if value is not None and places is not None:
                received = shown_part(value, places)
                if received != self._masked(received):
                    return True
        return False

    def text(self, text: str, call: InvocationRecord | None = None) -> str:
        """A text of this review: a message, a warning, an audit annotation.

        Args:
            text: as it was written.
            call: the record of the policy that wrote it; None for a text that the gateway made from those of several
                policies, such as the message of the response.
        """
        if text and self._reading and (call is None or any(self._calls[place] is call for place in self._reading)):
            return HIDDEN_TEXT
        return _scrubbed_text(text, self._values)

    def scrubbed(self, value: Any) -> Any:
        """A JSON value in which no string, and no name of a member, has a hidden value of the request.

        Values shorter than ``SHORTEST`` characters are not searched for.
        """
        return _scrubbed(value, self._values) if self._values else value

    @cached_property
    def _values(self) -> tuple[str, ...]:
        """The hidden values, in the forms in which they stand in the request, and decoded; the longest first."""
        if not self.secret and self._token is None:
            return ()
        found: set[str] = set()
        for value in (self._request.object, self._request.old_object):
            if self.secret:
                found.update(_secret_texts(value))
            elif self._token is not None and type(value) is dict:
                outer, inner = self._token
                found.update(_texts(value[outer].get(inner) if type(value.get(outer)) is dict else None))
        return tuple(sorted((each for each in found if len(each) >= SHORTEST), key=lambda text: (-len(text), text)))


def _union(inputs: Iterable[Inputs], also: Sequence[tuple[str, ...]]) -> Inputs:
    """What at least one of these includes."""
    places: list[tuple[str, ...]] = list(also)
    for each in inputs:
        if each.places is None:
            return Inputs.EVERYTHING
        places += each.places.pointers
    return Inputs(places=PointerSet(places))


def _masked_member(name: str, value: Any) -> Any:
    """A top-level member of a Secret."""
    if name == "metadata" and type(value) is dict:
        return {key: _hidden_values(each) if key == "annotations" else each for key, each in value.items()}
    if name in _PUBLIC and name != "metadata":
        return value
    return _hidden_values(value) if name in _KEYED else HIDDEN


def _written_hidden(value: Any, original: Any) -> Any:
    """``value`` without what is not in ``original``, at any depth."""
    if type(value) is dict and type(original) is dict:
        return {
            name: _written_hidden(member, original[name]) if name in original else HIDDEN
            for name, member in value.items()
        }
    return value if value == original else HIDDEN


def _hidden_values(value: Any) -> Any:
    return dict.fromkeys(value, HIDDEN) if type(value) is dict else HIDDEN


def _secret_texts(value: Any) -> Iterable[str]:
    if type(value) is not dict:
        return
    for name in _KEYED:
        yield from _texts(value.get(name))
    metadata = value.get("metadata")
    annotations = metadata.get("annotations") if type(metadata) is dict else None
    applied = annotations.get(_LAST_APPLIED) if type(annotations) is dict else None
    if type(applied) is str:
        yield applied
        try:
            before = _decode(applied)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return
        if type(before) is dict:
            for name in _KEYED:
                yield from _texts(before.get(name))


def _texts(value: Any) -> Iterable[str]:
    """The strings in a value, at any depth; each as it stands, encoded in base64, and decoded from it if it is."""
    rest = [value]
    while rest:
        each = rest.pop()
        if type(each) is dict:
            rest += each.values()
        elif type(each) is list:
            rest += each
        elif type(each) is str:
            yield each
            content = each.encode("utf-8", "surrogatepass")
            yield base64.b64encode(content).decode()
            try:
                decoded = base64.b64decode(content, validate=True).decode()
            except (binascii.Error, ValueError):
                continue
            yield from (decoded, decoded.strip())


def _scrubbed_text(text: str, values: Sequence[str]) -> str:
    for each in values:
        if each in text:
            text = text.replace(each, HIDDEN)
    return text


def _scrubbed(value: Any, values: Sequence[str]) -> Any:
    if type(value) is str:
        return _scrubbed_text(value, values)
    if isinstance(value, Mapping):
        return {_scrubbed_text(name, values): _scrubbed(member, values) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_scrubbed(element, values) for element in value]
    return value
