"""JSON Patch, RFC 6902: the operations and their errors. ``draft`` writes the document.

"If a normative requirement is violated by a JSON Patch document, or if an operation is not successful, evaluation of
the JSON Patch document SHOULD terminate and application of the entire patch document SHALL NOT be deemed successful"
(section 5): a failing operation raises, the draft is dropped, and the document is as it was.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import UNSET

from gateway.enums import StrEnum
from gateway.json_values import decoder_of
from gateway.patching.draft import Draft, place
from gateway.patching.equality import Value, equal
from gateway.patching.errors import PatchError, PatchLimitError, json_quoted, kind, prefixed, quoted
from gateway.patching.kubernetes import apply_kubernetes_patch
from gateway.patching.limits import DEFAULT_LIMITS, PatchLimits
from gateway.patching.parsing import TokenCount, decode, parse_pointer
from gateway.patching.visibility import RestrictedDraft, Visibility
from gateway.scopes.pointer import Pointer
from gateway.scopes.pointer_set import PointerSet


class PatchDialect(StrEnum):
    """The rules by which a JSON Patch is applied."""

    RFC_6902 = "rfc6902"
    """RFC 6902: for workers."""

    KUBERNETES = "kubernetes"
    """kube-apiserver's library, in every detail: for existing webhooks, which were written for it."""


class _Operation(msgspec.Struct, gc=False):
    """One operation as the worker wrote it, unchecked, so that the gateway's own error can have its number.

    "Members that are not explicitly defined for the operation in question MUST be ignored" (section 4); they are.
    """

    op: Any = UNSET
    path: Any = UNSET
    source: Any = msgspec.field(default=UNSET, name="from")
    value: Any = UNSET


_PATCH = decoder_of(list[_Operation])

_REMEMBERED_LENGTH = 200
_remembered = lru_cache(maxsize=1024)(parse_pointer)
"""A policy writes the same few paths for each object. 1,024 pointers of up to 200 characters are at most 1 MB."""


def apply_json_patch(
    document: Value,
    patch: bytes,
    *,
    limits: PatchLimits = DEFAULT_LIMITS,
    dialect: PatchDialect = PatchDialect.RFC_6902,
    visibility: PointerSet | None = None,
    is_counted: bool = False,
) -> Value:
    """The document after a JSON Patch given as JSON text; ``document`` itself is never changed.

    What the patch does not touch is the same object in the result as in ``document``; ``[]`` returns ``document``
    itself. The document must be at most ``limits.depth`` levels deep, and so is the result. The result may be any
    JSON value, as in the RFC: a caller that needs an object must check it. In the dialect of kube-apiserver the
    document may be a msgspec.Raw: then a ``test`` is compared with its text, not with the text that kube-apiserver
    would write for it.

    ``visibility`` is the part of the document that the worker received; None: all. See the module of this name.
    ``is_counted``: see ``parsing.count``.

    Raises PatchError if the patch is malformed, does not apply, exceeds a limit, or would lose or shift hidden values;
    ScopeError if it would read them. Operations are counted from 1.
    """
    if visibility is not None and visibility.whole:
        visibility = None
    if dialect is PatchDialect.KUBERNETES:
        return apply_kubernetes_patch(document, patch, limits, visibility, is_counted=is_counted)
    operations = decode(_PATCH, patch, "the JSON Patch", limits, is_counted=is_counted)
    if len(operations) > limits.operations:
        raise PatchLimitError(f"the JSON Patch: at most {limits.operations} operations, found {len(operations)}")
    draft = (
        Draft(document, patch, limits)
        if visibility is None
        else RestrictedDraft(document, patch, limits, Visibility(visibility))
    )
    tokens = TokenCount(limits)
    number = 0
    try:
        for operation in operations:
            number += 1
            _apply(draft, operation, tokens)
    except PatchError as error:
        raise prefixed(error, f"operation {number}{_label(operations[number - 1])}") from error
    return draft.root


def _apply(draft: Draft, operation: _Operation, tokens: TokenCount) -> None:
    """Apply one operation or raise."""
    name = operation.op
    if type(name) is not str:
        raise _expected("op", "a string", name)
    if (write := _WITH_VALUE.get(name)) is not None:
        target = _pointer(operation.path, "path", tokens)
        if operation.value is UNSET:
            raise _expected("value", "a value", UNSET)
        write(draft, operation.value, target)
    elif (relocate := _WITH_SOURCE.get(name)) is not None:
        target = _pointer(operation.path, "path", tokens)
        relocate(draft, _pointer(operation.source, "from", tokens), target)
    elif name == "remove":
        draft.take(_pointer(operation.path, "path", tokens))
    else:
        # 'Its value MUST be one of "add", "remove", "replace", "move", "copy", or "test"' (section 4).
        raise PatchError(f'"op": expected add, remove, replace, move, copy or test, found {json_quoted(name)}')


def _add(draft: Draft, value: Value, target: Pointer) -> None:
    draft.check_depth(value, target)
    draft.put(value, target)


def _replace(draft: Draft, value: Value, target: Pointer) -> None:
    draft.check_depth(value, target)
    draft.set(value, target)


def _test(draft: Draft, expected: Value, target: Pointer) -> None:
    found = draft.read(target)
    if equal(expected, found):
        return
    if kind(expected) == kind(found):
        raise PatchError(f"expected the value that the test names at {place(target)}, found {kind(found)} that differs")
    raise PatchError(f"expected {kind(expected)} at {place(target)}, found {kind(found)}")


def _move(draft: Draft, source: Pointer, target: Pointer) -> None:
    draft.move(source, target)


def _copy(draft: Draft, source: Pointer, target: Pointer) -> None:
    draft.share(source, target)


_WITH_VALUE: dict[str, Callable[[Draft, Value, Pointer], None]] = {"add": _add, "replace": _replace, "test": _test}
_WITH_SOURCE: dict[str, Callable[[Draft, Pointer, Pointer], None]] = {"move": _move, "copy": _copy}


def _pointer(text: Any, member: str, tokens: TokenCount) -> Pointer:
    """The tokens of the operation's ``path`` or ``from``."""
    if type(text) is not str:
        raise _expected(member, "a string", text)
    tokens.add(text, member)
    return _remembered(text) if len(text) <= _REMEMBERED_LENGTH else parse_pointer(text)


def _expected(member: str, what: str, found: Any) -> PatchError:
    return PatchError(f'expected {what} as "{member}", found {"none" if found is UNSET else kind(found)}')


def _label(operation: _Operation) -> str:
    """`` (OP PATH)``, as far as the worker gave them."""
    words = [quoted(word) for word in (operation.op, operation.path) if type(word) is str]
    if type(operation.op) is str and operation.op in _WITH_SOURCE and type(operation.source) is str:
        words.append("from " + quoted(operation.source))
    return f" ({' '.join(words)})" if words else ""
