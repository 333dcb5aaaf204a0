r"""JSON Patch as kube-apiserver applies it: evanphx/json-patch v4.13, transcribed operation by operation.

Existing webhooks were written for this library, which deviates from RFC 6902:

* ``replace`` of a member that is not there adds it; ``copy`` of one copies ``null``; ``test`` for ``null`` finds it.
* An index may be negative (counted from the end), or have a sign or zeros in front.
* ``add`` and ``replace`` without ``value`` mean ``null``.
* The root can be replaced, by an object or an array, but not added.
* ``test`` compares numbers and strings by their text: 1 is not 1.0, ``"\u0041"`` is not ``"A"``.
* In a pointer ``~2`` stands for itself, and everything before the first ``/`` is ignored.
* A patch ``null`` is an empty one.

None of this leaves the gateway: it sends its own difference. Errors have the library's own words, so that users can
search for them.
"""

import re
from typing import Any, Final

import msgspec

from gateway.depth import too_deep, value_too_deep
from gateway.json_values import VALUES
from gateway.patching.comparison import Comparison
from gateway.patching.encoding import encoded
from gateway.patching.equality import Value
from gateway.patching.errors import PatchError, PatchLimitError, kind, prefixed, quoted
from gateway.patching.limits import PatchLimits
from gateway.patching.nodes import Container, Elements, Node, children_of
from gateway.patching.parsing import TokenCount, charged, count, decode
from gateway.patching.visibility import Visibility
from gateway.scopes.pointer import Pointer
from gateway.scopes.pointer_set import PointerSet
from gateway.slices import finished

_PATCH: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw] | None] | None)
_STRING: Final = msgspec.json.Decoder(str)
_ESCAPE: Final = re.compile("~[01]")
_MISSING: Final = "missing value"

_LARGE_BYTES: Final = 65_536
"""A larger value stays a text: to learn whether Go would write it in the same way takes 20 ns for each byte."""

Operation = dict[str, msgspec.Raw]


def apply_kubernetes_patch(
    document: Value,
    patch: bytes,
    limits: PatchLimits,
    visibility: PointerSet | None = None,
    *,
    is_counted: bool = False,
) -> Value:
    """The document after a JSON Patch; ``document`` may be a msgspec.Raw, whose text then counts in comparisons.

    ``is_counted``: see ``parsing.count``; ``check_texts`` was called, too. ``visibility``: see
    ``gateway.patching.visibility``. If an array is not shown whole, an index must be one of RFC 6901.

    Raises PatchError; ScopeError if the patch would read hidden values.
    """
    if isinstance(document, msgspec.Raw):
        decode(VALUES, bytes(document), "the document", limits)
    if not is_counted:
        finished(count(patch, "the JSON Patch", limits))
        check_texts(patch, limits)
    operations = decode(_PATCH, patch, "the JSON Patch", limits, is_counted=True) or []
    if len(operations) > limits.operations:
        raise PatchLimitError(f"the JSON Patch: at most {limits.operations} operations, found {len(operations)}")
    target = _Target(document, limits)
    guard = None if visibility is None else Visibility(visibility, opened=children_of)
    number = 0
    try:
        for operation in operations:
            number += 1
            if guard is not None:
                _check_visibility(target, guard, operation or {})
            _apply(target, operation or {})
        return target.root.value() if operations else Node(document).value()
    except PatchError as error:
        raise prefixed(error, f"operation {number}{_label(operations[number - 1])}") from error
    except RecursionError as error:
        raise PatchError("the document nests too deep to be compared") from error


def check_texts(patch: bytes, limits: PatchLimits) -> None:
    """Decode the whole of a counted patch: later, texts are opened only where they are used, and must then be valid.

    Raises PatchError.
    """
    decode(VALUES, patch, "the JSON Patch", limits, is_counted=True)


class _Target:
    """The draft of the document, and the cost of the patch so far."""

    __slots__ = ("_copied", "_limits", "_shifted", "_tokens", "_values", "comparison", "root")

    def __init__(self, document: Value, limits: PatchLimits) -> None:
        node = Node(document)
        # "if doc[0] == '['": everything else is read as an object.
        root = node.open_array() if node.looks_like_array else node.open_object()
        if root is None:
            found = node.value()
            raise PatchError(f"the document: expected a JSON object or array, found {kind(found)}")
        self.root: Container = root
        self.comparison = Comparison(limits.compared_values, limits.compared_bytes)
        self._limits = limits
        self._tokens = TokenCount(limits)
        self._copied = 0
        self._values = 0
        self._shifted = 0

    def find(self, path: str, member: str) -> tuple[Container | None, str]:
        """findObject: the container to which a pointer's last token refers, and that token."""
        tokens = self.tokens(path, member)
        if not tokens:
            return None, ""
        container: Container | None = self.root
        for token in tokens[:-1]:
            try:
                node = None if container is None else container.get(_unescaped(token))
            except PatchError:
                return None, ""
            if node is None or node.raw is None:
                return None, ""
            container = node.open_array() if node.looks_like_array else node.open_object()
        return container, _unescaped(tokens[-1])

    def tokens(self, path: str, member: str) -> list[str]:
        """The tokens of a pointer, not unescaped."""
        self._tokens.add(path, member)
        return path.split("/")[1:]

    def insert(self, container: Container, key: str, node: Node | None) -> None:
        """``add`` to a container, within the limits."""
        self._shift(container)
        container.add(key, node)

    def take(self, container: Container, key: str) -> None:
        """``remove`` from a container, within the limits."""
        self._shift(container)
        container.remove(key)

    def measure(self, node: Node | None, path: str, *, count: bool = True) -> None:
        """Reject a value that would nest too deep at ``path``; the size of copied or measured values is limited."""
        if node is None:
            return
        text = node.measured()
        self._copied += len(text) if count else 0
        limit = self._limits.copied_bytes
        if self._copied > limit:
            raise PatchLimitError(
                f"a patch may copy {limit} bytes in all, and with this operation copies {self._copied}"
            )
        limit = self._limits.values
        # A copy may be parsed again: its numbers are charged, too.
        self._values += charged(text, limit - self._values) if count else 0
        if self._values > limit:
            raise PatchLimitError(f"a patch may copy {limit} values in all, and would copy more")
        limit = self._limits.depth - path.count("/")
        # Of a large value of the patch it takes three times as long to look at its text as to parse it, which it is
        # anyway. (A copy is not.)
        if too_deep(text, limit) if count or len(text) <= _LARGE_BYTES else value_too_deep(node.value(), limit):
            raise PatchLimitError(
                f"the document may nest {self._limits.depth} levels deep, and would nest deeper at {quoted(path)}"
            )

    def _shift(self, container: Container) -> None:
        if isinstance(container, Elements):
            self._shifted += len(container.elements)
            if self._shifted > self._limits.shifted_elements:
                raise PatchLimitError(
                    f"a patch may move {self._limits.shifted_elements} array elements by one place in all,"
                    f" and with this operation moves {self._shifted}"
                )


def _apply(target: _Target, operation: Operation) -> None:
    name = _text(operation, "op")
    apply = _OPERATIONS.get(name or "unknown")
    if apply is None:
        raise PatchError(f"Unexpected kind: {quoted(name or 'unknown')}")
    apply(target, operation)


def _check_visibility(target: _Target, visibility: Visibility, operation: Operation) -> None:
    """Reject an operation that would read, lose or shift hidden values."""
    name = _text(operation, "op")
    if name not in _OPERATIONS:
        return
    if name in {"move", "copy"}:
        source = _place(target, operation, "from", name)
        visibility.check_read(target.root, source)
        if name == "move":
            visibility.check_write(target.root, source)
    pointer = _place(target, operation, "path", name)
    if name == "test":
        visibility.check_read(target.root, pointer)
    else:
        visibility.check_write(target.root, pointer, replaces=name == "replace")


def _place(target: _Target, operation: Operation, member: str, name: str) -> Pointer:
    return tuple([_unescaped(token) for token in target.tokens(_pointer(operation, member, name), member)])


def _add(target: _Target, operation: Operation) -> None:
    path = _pointer(operation, "path", "add")
    container, key = target.find(path, "path")
    if container is None:
        raise PatchError(f"add operation does not apply: doc is missing path: {quoted(path)}: {_MISSING}")
    value = _value(operation)
    target.measure(value, path, count=False)
    target.insert(container, key, value)


def _remove(target: _Target, operation: Operation) -> None:
    path = _pointer(operation, "path", "remove")
    container, key = target.find(path, "path")
    if container is None:
        raise PatchError(f"remove operation does not apply: doc is missing path: {quoted(path)}: {_MISSING}")
    target.take(container, key)


def _replace(target: _Target, operation: Operation) -> None:
    path = _pointer(operation, "path", "replace")
    if not path:
        value = _value(operation)
        root = None if value is None else value.open_object() or value.open_array()
        if root is None:
            raise PatchError("replace operation value must be object or array")
        target.root = root
        return
    container, key = target.find(path, "path")
    if container is None:
        raise PatchError(f"replace operation does not apply: doc is missing path: {quoted(path)}: {_MISSING}")
    try:
        container.get(key)
    except PatchError:
        message = f"replace operation does not apply: doc is missing key: {quoted(path)}: {_MISSING}"
        raise PatchError(message) from None
    value = _value(operation)
    target.measure(value, path, count=False)
    container.set(key, value)


def _move(target: _Target, operation: Operation) -> None:
    source = _pointer(operation, "from", "move")
    container, key = target.find(source, "from")
    if container is None:
        raise PatchError(f"move operation does not apply: doc is missing from path: {quoted(source)}: {_MISSING}")
    node = container.get(key)
    target.take(container, key)
    path = _pointer(operation, "path", "move")
    container, key = target.find(path, "path")
    if container is None:
        raise PatchError(f"move operation does not apply: doc is missing destination path: {quoted(path)}: {_MISSING}")
    if path.count("/") > source.count("/"):
        target.measure(node, path)
    target.insert(container, key, node)


def _copy(target: _Target, operation: Operation) -> None:
    source = _pointer(operation, "from", "copy")
    container, key = target.find(source, "from")
    if container is None:
        raise PatchError(f"copy operation does not apply: doc is missing from path: {quoted(source)}: {_MISSING}")
    node = container.get(key)
    path = _pointer(operation, "path", "copy")
    container, key = target.find(path, "path")
    if container is None:
        raise PatchError(f"copy operation does not apply: doc is missing destination path: {quoted(path)}: {_MISSING}")
    target.measure(node, path)
    target.insert(container, key, None if node is None else node.copied())


def _test(target: _Target, operation: Operation) -> None:
    path = _pointer(operation, "path", "test")
    expected = _value(operation)
    if not path:
        document = Node(None)
        document.container = target.root
        found: Node | None = document
    else:
        container, key = target.find(path, "path")
        if container is None:
            raise PatchError(f"test operation does not apply: is missing path: {quoted(path)}: {_MISSING}")
        found = container.get(key)
        if found is None and (expected is None or expected.raw is None):
            return
        if found is None or expected is None:
            raise PatchError(f"testing value {quoted(path)} failed: test failed")
    if not target.comparison.equal(found, expected):
        raise PatchError(f"testing value {quoted(path)} failed: test failed")


_OPERATIONS: Final = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _value(operation: Operation) -> Node | None:
    """The node of ``value``: None if there is none, one without text for ``null``."""
    raw = operation.get("value")
    if raw is None:
        return None
    text = bytes(raw)
    if text == b"null":
        return Node(None)
    if len(text) > _LARGE_BYTES:
        return Node(raw)
    # A text that Go would write in the same way is kept as a value, which is cheaper to compare and copy.
    value = VALUES.decode(text)
    return Node(value if encoded(value) == text else raw)


def _text(operation: Operation, member: str) -> str | None:
    """A member that should be a string; None if it is absent or no string."""
    raw = operation.get(member)
    try:
        return None if raw is None else _STRING.decode(raw)
    except msgspec.DecodeError:
        return None


def _pointer(operation: Operation, member: str, name: str) -> str:
    raw: Any = operation.get(member)
    if raw is not None and bytes(raw) != b"null":
        text = _text(operation, member)
        if text is not None:
            return text
        raise PatchError(f'{name} operation failed to decode {member}: expected a string as "{member}"')
    raise PatchError(f"{name} operation failed to decode {member}: {_MISSING}")


def _label(operation: Operation | None) -> str:
    """`` (OP PATH)``, without what the webhook left out."""
    words = [_text(operation or {}, member) for member in ("op", "path")]
    return f" ({' '.join([quoted(word) for word in words if word is not None])})" if any(words) else ""


def _unescaped(token: str) -> str:
    return _ESCAPE.sub(lambda found: "/" if found[0] == "~1" else "~", token) if "~" in token else token
