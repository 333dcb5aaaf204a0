"""A whole object as a worker's change: the object as it should be, in the place of the one that the worker was sent.

Where the worker was sent only a part, what it returns is compared with that part, never with the object itself: else
whatever was hidden would read as removed. What differs is then done to the object itself, under the rules of
``visibility``, and more strictly where an array was shown in part: which of its elements became which is a guess of
ours, and an element's hidden part must not become another's by that. So such an array may not differ at all.
"""

from gateway.patching.difference import difference
from gateway.patching.equality import Value
from gateway.patching.errors import PatchError, prefixed
from gateway.patching.limits import DEFAULT_LIMITS, PatchLimits
from gateway.patching.parsing import parse_object, parse_pointer
from gateway.patching.visibility import RestrictedDraft, Visibility
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.projection import shown_part


def apply_object(
    before: dict[str, Value],
    content: bytes,
    *,
    limits: PatchLimits = DEFAULT_LIMITS,
    visibility: PointerSet | None = None,
) -> Value:
    """The object after a worker returned it whole, as JSON text; ``before`` itself is never changed.

    ``visibility`` is what the worker was shown of ``before``, as places over it. None: all; then the result is what was
    returned, and shares nothing with ``before``.

    Raises PatchError if the text is not a JSON object, is deeper than ``limits.depth``, or differs from what was sent
    in a way that would lose or shift what was hidden.
    """
    returned = parse_object(content, limits=limits)
    if visibility is None or visibility.whole:
        return returned
    draft = RestrictedDraft(before, content, limits, Visibility(visibility, arrays_whole=True))
    for operation in difference(shown_part(before, visibility), returned):
        target = parse_pointer(operation.path)
        try:
            if operation.op == "add":
                draft.put(operation.value, target)
            elif operation.op == "replace":
                draft.set(operation.value, target)
            else:
                draft.take(target)
        except PatchError as error:
            raise prefixed(error, "the object") from error
    return draft.root
