"""When a ``test`` of kube-apiserver's JSON Patch library holds: lazyNode.equal, and a bound on its cost.

Objects and arrays are equal if their parts are; other values, if their texts are. So 1 is not 1.0. A ``null`` in an
array panics the request's goroutine, whether the arrays are equal or not. In an object ``null`` is compared like any
other member, but a ``null`` written by this patch never equals one that was there before.
"""

from gateway.patching.errors import PatchError, PatchLimitError
from gateway.patching.nodes import Elements, Members, Node, PanicError


class Comparison:
    """Compares values, within limits on the number of values, and on the bytes of text, that all comparisons of a patch
    compare together.
    """

    __slots__ = ("_left", "_limit", "_text_left", "_text_limit")

    def __init__(self, limit: int, text_limit: int) -> None:
        self._limit = limit
        self._left = limit
        self._text_limit = text_limit
        self._text_left = text_limit

    def equal(self, one: Node | None, other: Node | None) -> bool:
        """Whether a value of the document is what a test expects."""
        if one is not None and other is not None and self._same_throughout(one, other):
            return True
        return self._equal(one, other)

    def _same_throughout(self, one: Node, other: Node) -> bool:
        """Whether two values have the same text, so that their parts need not be compared.

        Only for nodes that are not opened yet and have no ``null``, which does not always equal itself.
        """
        if one.container is not None or other.container is not None or one.raw is None or other.raw is None:
            return False
        text = one.scalar()
        if text is None:
            return False
        self._text_left -= len(text)
        if self._text_left < 0:
            raise PatchError(
                f"the tests of a patch may compare {self._text_limit} bytes in all, and would compare more"
            )
        return b"null" not in text and text == other.scalar()

    def _equal(self, one: Node | None, other: Node | None) -> bool:
        if one is None or other is None:
            raise PanicError("invalid memory address or nil pointer dereference")
        self._left -= 1
        if self._left < 0:
            raise PatchLimitError(
                f"the tests of a patch may compare {self._limit} values in all, and would compare more"
            )
        if one.container is None and one.open_object() is None and one.open_array() is None:
            return other.container is None and _same_text(one, other)
        if isinstance(one.container, Members):
            known = other.container
            members = known if isinstance(known, Members) else None if known is not None else other.open_object()
            return members is not None and self._same_members(one.container, members)
        elements = other.container if isinstance(other.container, Elements) else other.open_array()
        return isinstance(one.container, Elements) and elements is not None and self._same(one.container, elements)

    def _same_members(self, one: Members, other: Members) -> bool:
        mine, others = one.members or {}, other.members or {}
        if mine.keys() != others.keys():
            return False
        for name in mine:
            child, its = one.get(name), other.get(name)
            if (child is None) != (its is None):
                return False
            if child is not None and not self._equal(child, its):
                return False
        return True

    def _same(self, one: Elements, other: Elements) -> bool:
        if len(one.elements) != len(other.elements):
            return False
        return all(self._equal(one.get(str(index)), other.get(str(index))) for index in range(len(one.elements)))


def _same_text(one: Node, other: Node) -> bool:
    return type(other.raw) is not dict and type(other.raw) is not list and one.scalar() == other.scalar()
