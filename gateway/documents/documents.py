"""The documents of one review: for each policy the part of the AdmissionRequest that its inputs include.

* Members have the request's own order; members that the request does not have are absent. ``gateway.scopes.inputs``
  decides which members a document has, ``gateway.scopes.projection`` which part of a member.
* A whole, unchanged top-level member is copied as the API server's own bytes. Only ``object`` can change, by the
  policies earlier in the chain; then it is encoded again, in its own member order. So is a part of a member.
* ``namespaceObject`` comes last: see ``gateway.documents.namespace``.
* So equal values in equal order give equal bytes, and equal bytes are the same document.

Policies with equal inputs share one document. The document and its digest are reused as long as the bytes are equal. If
the object changes outside the inputs, nothing is hashed again; if the inputs include nothing of the object, nothing is
encoded again.
"""

import hashlib
from typing import Any, Final

import msgspec
from msgspec import Struct

from gateway.documents.namespace import Labels, namespace_object, namespace_of
from gateway.json_values import VALUES
from gateway.quoting import quoted
from gateway.review.request import Request, ReviewError
from gateway.scopes.inputs import NAMESPACE, OBJECT, UID, WHOLE, Inputs
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.projection import NOTHING, shown_part

_encode: Final = msgspec.json.Encoder().encode


_OLD_OBJECT: Final = "oldObject"
_NULL: Final = msgspec.Raw(b"null")
_ORIGINAL: Final = object()
"""Marks the unchanged object, which may be None."""


class Document(Struct, frozen=True, kw_only=True):
    """JSON text with the members of AdmissionRequest, as sent to the worker.

    ``digest``: SHA-256 of the bytes. (xxh3 is ten times as fast, but not collision-resistant.)
    """

    content: bytes
    digest: bytes


def hashed(content: bytes) -> Document:
    """The document of these bytes."""
    return Document(content=content, digest=hashlib.sha256(content).digest())


class _Draft(Struct, kw_only=True, eq=False):
    """The documents for one ``inputs``: the unchanging members, and the last document.

    ``members`` are the document's members, in order, as JSON texts; ``object`` among them is the original one.
    ``object`` is the part of the object in the inputs, None if there is none; ``namespace`` that of the Namespace.
    """

    members: dict[str, msgspec.Raw]
    object: PointerSet | None
    namespace: PointerSet | None = None
    current: Any = None
    labels: Labels | None = None
    document: Document | None = None

    def fits(self, current: Any, labels: Labels | None) -> bool:
        """Whether the last document is for this object and this namespace."""
        return (current is self.current or self.object is None) and (labels is self.labels or self.namespace is None)


class DocumentBuilder(Struct, eq=False):
    """Makes the documents for one request. ``drafts`` are those made so far, ``values`` the decoded members."""

    request: Request
    drafts: dict[object, _Draft] = {}
    values: dict[str, Any] = {}

    @property
    def namespace(self) -> str:
        """The name of the namespace of ``namespaceObject``, "" if there is none to look up."""
        return namespace_of(self.request)

    def of(self, inputs: Inputs, current: Any, *, changed: bool, namespace: Labels | None = None) -> Document:
        """The document for ``inputs``.

        Args:
            inputs: what the document includes.
            current: the object after the changes so far, if ``changed``; at most 256 levels deep. It is not mutated.
            changed: whether ``current`` differs from the request's own object; if not, the latter is used.
            namespace: the labels of the request's namespace, used only if ``inputs.needs_namespace``; None: there is no
                such namespace, and ``namespaceObject`` is absent.

        Raises:
            ReviewError: a member that the inputs include in part cannot be read.
        """
        draft = self.drafts.get(inputs.key)
        if draft is None:
            draft = self.drafts[inputs.key] = self._drafted(inputs)
        state = current if changed else _ORIGINAL
        if draft.document is not None and draft.fits(state, namespace):
            return draft.document
        members: dict[str, Any] = draft.members
        places = draft.object
        if places is not None and not (places.whole and state is _ORIGINAL):
            value = current if changed else self.request.object
            members = {**members, OBJECT: shown_part(value, places)}
        if draft.namespace is not None and namespace is not None:
            members = {**members, NAMESPACE: shown_part(namespace_object(self.namespace, namespace), draft.namespace)}
        # One call that copies each text once: for a large object, the copy is most of a document's cost.
        content = _encode(members)
        if draft.document is None or draft.document.content != content:
            draft.document = hashed(content)
        draft.current, draft.labels = state, namespace
        return draft.document

    @staticmethod
    def parses(inputs: Inputs) -> bool:
        """Whether the document for ``inputs`` has a part of ``object`` or of ``oldObject``, which is parsed for it."""
        if inputs.places is None:
            return False
        places = map(inputs.shown, (OBJECT, _OLD_OBJECT))
        return any(each is not None and not each.whole for each in places)

    def _drafted(self, inputs: Inputs) -> _Draft:
        original = self.request.members
        if inputs.places is None:
            members = {name: text for name, text in original.items() if name != UID}
            return _Draft(members=members, object=WHOLE if OBJECT in members else None)
        members = {}
        for name, text in original.items():
            # If a later Kubernetes adds a namespaceObject to the request, the document still has the gateway's own.
            places = None if name == NAMESPACE else inputs.members.get(name, inputs.others)
            if places is None:
                continue
            if places.whole:
                members[name] = text
            elif name == OBJECT:
                if text != _NULL:
                    members[name] = text  # ``of`` replaces it by the part in the inputs
            elif (part := self._part(name, places)) is not None:
                members[name] = part
        return _Draft(
            members=members,
            object=inputs.members.get(OBJECT, inputs.others) if OBJECT in members else None,
            namespace=inputs.members.get(NAMESPACE, inputs.others)
            if inputs.needs_namespace and self.namespace
            else None,
        )

    def _part(self, name: str, places: PointerSet) -> msgspec.Raw | None:
        """The JSON text of the part of a member in the inputs; None if there is none."""
        shown = shown_part(self._value(name), places)
        return None if shown is NOTHING else msgspec.Raw(_encode(shown))

    def _value(self, name: str) -> Any:
        """A decoded member of the request, except ``object``."""
        if name == _OLD_OBJECT:
            return self.request.old_object
        if name not in self.values:
            try:
                self.values[name] = VALUES.decode(self.request.text(name) or _NULL)
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                raise ReviewError(f"request.{quoted(name)} cannot be read: {error}") from None
        return self.values[name]
