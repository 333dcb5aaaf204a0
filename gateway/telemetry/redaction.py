"""What of a reviewed request may be shown after its review: in logs, in explanations, on the dashboard, in recordings.

Three rules, from the widest to the strictest:

1. **Inputs.** Of ``object``, ``oldObject``, ``options`` and every other member, only what is included in the inputs of
   a policy that received a document of this review. Who sent the request, and the resource, are always shown
   (``IDENTITY``).
2. **Secrets.** Of a Secret in any version, only ``apiVersion``, ``kind``, ``type``, ``immutable`` and ``metadata`` are
   shown, and the keys of ``data`` and ``stringData``. Every other value is ``HIDDEN``, and so is every annotation's:
   ``kubectl.kubernetes.io/last-applied-configuration`` has the whole object, and others have copies of it in other
   forms. Labels are public, also one that repeats a value: selectors read them, and to search them would change what
   they select, most of all where a value is a common word. The tokens in TokenReview and TokenRequest are hidden, too.
3. **Texts about a Secret.** A policy that received a hidden value may write it into its message, in any form; and so
   may every policy after it, which sees the changes of that one. So texts of these policies are ``HIDDEN_TEXT``. A
   policy whose inputs leave the values out keeps its texts: ``inputs: [/object/metadata/labels]``. What else is derived
   from answers about a Secret (the paths of patches) is searched for the values themselves: ``Redaction.scrubbed``.

What remains is what a verdict says by itself: whether a policy denied, and how many fields it changed.

Everything here is pure, and does nothing until it is called: it is made for a decision that is shown.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

from gateway.engine.decision import Decision
from gateway.engine.field_changes import is_secret
from gateway.engine.invocation_record import InvocationRecord
from gateway.json_values import VALUES
from gateway.review.request import Request, ReviewError
from gateway.scopes.inputs import OBJECT, Inputs
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.projection import NOTHING, shown_part
from gateway.telemetry.masking import (
    HIDDEN,
    KEYED,
    is_public,
    masked_member,
    scrubbed,
    scrubbed_text,
    secret_texts,
    texts,
    without_written,
)

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

MOST_VALUES: Final = 200
"""Values that are searched for in each text. Of a Secret with more, no text is shown: that is no reason to spend
seconds on one document."""

FORMS: Final = 5_000
"""Forms of values that are collected, some 20 ms of work. Of a Secret with more, paths are shown as of one whose values
are not known, and no text is: 140,000 small values took 0.7 s, and each path as long again."""

_OBJECT_IDENTITY: Final = (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"))
"""Of the object, what the request's own members say as well."""

_TOKENS: Final[Mapping[tuple[str, str], tuple[str, str]]] = {
    ("authentication.k8s.io", "TokenReview"): ("spec", "token"),
    ("authentication.k8s.io", "TokenRequest"): ("status", "token"),
}

_decode: Final = VALUES.decode


class Redaction:
    """What may be shown of one decision.

    Args:
        request: the one that was reviewed.
        calls: the decision's records, in order. Those that received a document count.
        also: places over the request that are shown besides; a recording has what else the verdicts depend on.

    ``hides_changes``: the values that policies wrote are hidden, all of them.
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
        self.hides_changes: Final = self.secret or self._token is not None
        # A retained decision's request has no object any more.
        self._is_reduced = OBJECT not in request.members

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
            return without_written(shown, self.object(self._request.object))
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
            return {name: masked_member(name, member) for name, member in value.items()}
        if self._token is not None:
            outer, inner = self._token
            if type(value.get(outer)) is dict and inner in value[outer]:
                return {**value, outer: {**value[outer], inner: HIDDEN}}
        return value

    @cached_property
    def whole(self) -> bool:
        """Whether no value that a policy received is hidden: the request as shown has the same verdicts."""
        return not self._reading

    @cached_property
    def _objects(self) -> Mapping[str, Any]:
        """Both objects, None for one that no policy could read either."""
        found = {}
        for member, attribute in ((OBJECT, "object"), (OLD_OBJECT, "old_object")):
            try:
                found[member] = getattr(self._request, attribute)
            except ReviewError:
                found[member] = None
        return found

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
        if self._is_reduced:
            return any(not is_public(inputs.shown(member)) for member in (OBJECT, OLD_OBJECT))
        for member, value in self._objects.items():
            places = inputs.shown(member)
            if value is not None and places is not None:
                received = shown_part(value, places)
                if received != self._masked(received):
                    return True
        return False

    def hides_texts(self, call: InvocationRecord | None = None) -> bool:
        """Whether what a policy wrote must not be shown: messages, warnings, audit annotations, its answer's version.

        Args:
            call: the record of the policy that wrote it; None for what the gateway made from the texts of several
                policies, such as the message of the response.
        """
        return any(call is None or self._calls[place] is call for place in self._reading)

    def text(self, text: str, call: InvocationRecord | None = None) -> str:
        """A text of this review, by ``hides_texts``; as it was written, without hidden values, or ``HIDDEN_TEXT``."""
        hidden = self.hides_texts(call) or len(self._values) > FORMS
        return HIDDEN_TEXT if text and hidden else scrubbed_text(text, self._values)

    def cleaned(self, text: str, characters: int) -> str:
        """The first ``characters`` of a text, at most, without hidden values."""
        if not self._values:
            return text[:characters]
        if len(self._values) > MOST_VALUES:
            return HIDDEN
        longest = len(self._values[0])
        if len(text) > characters + longest:
            # The end may be the beginning of a value.
            return scrubbed_text(text[: characters + longest], self._values)[:-longest][:characters]
        return scrubbed_text(text, self._values)[:characters]

    def path(self, pointer: str) -> str:
        """The path of a change of this review, without hidden values."""
        if (self._is_reduced and self._reading) or len(self._values) > FORMS:
            # A policy may have made a name of a value, which is not known any more.
            parts = pointer.split("/")
            names = 2 if parts[1:2] and parts[1] in KEYED else 3
            return pointer if len(parts) <= names else "/".join([*parts[:names], HIDDEN])
        return scrubbed_text(pointer, self._values)

    def scrubbed(self, value: Any) -> Any:
        """A JSON value in which no string, and no name of a member, has a hidden value of the request.

        Values shorter than ``SHORTEST`` characters are not searched for.
        """
        if len(self._values) > FORMS:
            return HIDDEN
        return scrubbed(value, self._values) if self._values else value

    @cached_property
    def _values(self) -> tuple[str, ...]:
        """The hidden values, in the forms in which they stand in the request, and decoded; the longest first.

        If there are more than ``FORMS``, only some.
        """
        if not self.secret and self._token is None:
            return ()
        found: set[str] = set()
        for each in self._forms():
            if len(each) >= SHORTEST:
                found.add(each)
                if len(found) > FORMS:
                    break
        return tuple(sorted(found, key=lambda text: (-len(text), text)))

    def _forms(self) -> Iterable[str]:
        for value in self._objects.values():
            if self.secret:
                yield from secret_texts(value)
            elif self._token is not None and type(value) is dict:
                outer, inner = self._token
                yield from texts(value[outer].get(inner) if type(value.get(outer)) is dict else None)


def _union(inputs: Iterable[Inputs], also: Sequence[tuple[str, ...]]) -> Inputs:
    """What at least one of these includes."""
    places: list[tuple[str, ...]] = list(also)
    for each in inputs:
        if each.places is None:
            return Inputs.EVERYTHING
        places += each.places.pointers
    return Inputs(places=PointerSet(places))
