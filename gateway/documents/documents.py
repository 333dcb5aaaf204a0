"""The documents of one review: for each policy the part of the AdmissionRequest that its inputs show.

* Members stand in the request's own order; what the request does not have does not appear. Which members are shown is
  said in ``gateway.scopes.inputs``; which part of one, in ``gateway.scopes.projection``.
* A whole top-level member that nobody has changed passes through as the API server's own bytes. Only ``object`` can be
  changed, by the policies earlier in the chain; then it is encoded anew, in its own member order. So is the shown part
  of a member.
* ``namespaceObject`` comes last: see ``gateway.documents.namespace``.
* So equal values in equal order give equal bytes, and equal bytes are the same question.

Equal inputs share one document. It stays the very same one, its digest included, as long as its bytes do: when the
object changes where the inputs don't reach, nothing is sent or hashed anew; where they don't reach into it at all,
nothing is even encoded.
"""

import hashlib
from typing import Any, Final

import msgspec
from msgspec import Struct

from gateway.documents.namespace import Labels, namespace_object, namespace_of
from gateway.review.request import Request, ReviewError
from gateway.scopes.inputs import NAMESPACE, OBJECT, UID, WHOLE, Inputs
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.projection import NOTHING, shown_part
from gateway.wording import shown as readable

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


_OLD_OBJECT: Final = "oldObject"
_NULL: Final = msgspec.Raw(b"null")
_AS_IT_CAME: Final = object()
"""Stands for the object that nobody has changed, which may be None."""


class Document(Struct, frozen=True, kw_only=True):
    """JSON text in the AdmissionRequest's own shape, as it is sent.

    ``digest``: SHA-256 of the bytes. (xxh3 is ten times as fast, but not resistant to collisions made on purpose.)
    """

    content: bytes
    digest: bytes


def hashed(content: bytes) -> Document:
    """The document of these bytes."""
    return Document(content=content, digest=hashlib.sha256(content).digest())


class _Draft(Struct, kw_only=True, eq=False):
    """The documents for one ``inputs``: what never changes in them, and the last one that was made.

    ``members`` are those of the document, in order, as texts; in the place of ``object`` stands the API server's.
    ``object`` is what is shown of it, None if it does not appear; ``namespace`` what is shown of the Namespace.
    """

    members: dict[str, msgspec.Raw]
    object: PointerSet | None
    namespace: PointerSet | None = None
    current: Any = None
    labels: Labels | None = None
    document: Document | None = None

    def fits(self, current: Any, labels: Labels | None) -> bool:
        """Whether the last document, if there is one, is the one about this object and this namespace."""
        return (current is self.current or self.object is None) and (labels is self.labels or self.namespace is None)


class Documents(Struct, eq=False):
    """The documents about one request. ``drafts`` are those made so far, ``values`` the members that were decoded."""

    request: Request
    drafts: dict[object, _Draft] = {}
    values: dict[str, Any] = {}

    @property
    def namespace(self) -> str:
        """The name of the namespace whose object is offered, "" if there is none to look up."""
        return namespace_of(self.request)

    def of(self, inputs: Inputs, current: Any, *, changed: bool, namespace: Labels | None = None) -> Document:
        """The document that shows ``inputs``.

        Args:
            inputs: what is shown.
            current: the object's value after the changes so far, if ``changed``; at most 256 levels deep, and never
                changed itself.
            changed: whether it is another one than the request's own; if not, that is taken.
            namespace: the labels of the request's namespace, which matter only if ``inputs.needs_namespace``; None if
                there is no such namespace, and then ``namespaceObject`` does not appear.

        Raises:
            ReviewError: a member of which a part is to be shown cannot be read.
        """
        draft = self.drafts.get(inputs.key)
        if draft is None:
            draft = self.drafts[inputs.key] = self._drafted(inputs)
        stands = current if changed else _AS_IT_CAME
        if draft.document is not None and draft.fits(stands, namespace):
            return draft.document
        members: dict[str, Any] = draft.members
        places = draft.object
        if places is not None and not (places.whole and stands is _AS_IT_CAME):
            value = current if changed else self.request.object
            members = {**members, OBJECT: shown_part(value, places)}
        if draft.namespace is not None and namespace is not None:
            members = {**members, NAMESPACE: shown_part(namespace_object(self.namespace, namespace), draft.namespace)}
        # All in one call, in which the texts are copied once: of a large object, that is what a document costs.
        content = _encode(members)
        if draft.document is None or draft.document.content != content:
            draft.document = hashed(content)
        draft.current, draft.labels = stands, namespace
        return draft.document

    def _drafted(self, inputs: Inputs) -> _Draft:
        came = self.request.members
        if inputs.places is None:
            members = {name: text for name, text in came.items() if name != UID}
            return _Draft(members=members, object=WHOLE if OBJECT in members else None)
        members = {}
        for name, text in came.items():
            # Should Kubernetes give the request a namespaceObject, ours stays ours.
            places = None if name == NAMESPACE else inputs.members.get(name, inputs.others)
            if places is None:
                continue
            if places.whole:
                members[name] = text
            elif name == OBJECT:
                if text != _NULL:
                    members[name] = text  # its shown part is made later
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
        """The text of the part of a member that is shown; None if nothing of it appears."""
        shown = shown_part(self._value(name), places)
        return None if shown is NOTHING else msgspec.Raw(_encode(shown))

    def _value(self, name: str) -> Any:
        """A member of the request but ``object``, decoded."""
        if name == _OLD_OBJECT:
            return self.request.old_object
        if name not in self.values:
            try:
                self.values[name] = _decode(self.request.members[name])
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                raise ReviewError(f"request.{readable(name)} cannot be read: {error}") from None
        return self.values[name]
