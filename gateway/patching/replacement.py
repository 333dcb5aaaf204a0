"""A whole object as a worker's change: it replaces the object that the worker received.

If the worker received only a part, its object is compared with that part, never with the whole object: otherwise hidden
values would count as removed. The difference is then applied to the whole object, by the rules of ``visibility``. An
array that was shown in part may not differ at all: the alignment of its elements is a heuristic, and must not move one
element's hidden part to another.
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
    is_counted: bool = False,
) -> Value:
    """The object after a worker returned it whole, as JSON text; ``before`` itself is never changed.

    ``visibility`` is the part of ``before`` that the worker received. None: all; then the result is the worker's object
    and shares nothing with ``before``. ``is_counted``: see ``parsing.count``.

    Raises PatchError if the text is not a JSON object, is deeper than ``limits.depth``, or has a difference that would
    lose or shift hidden values.
    """
    returned = parse_object(content, limits=limits, is_counted=is_counted)
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
