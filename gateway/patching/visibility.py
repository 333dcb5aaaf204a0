"""What a patch may read and move if its worker received only a part of the object.

A worker answers about its document, but its patch is applied to the whole object. Without rules the patch could read
hidden values: ``copy`` a password into a label, guess it with ``test``, move a hidden element to a visible index. So:

* A patch may only read visible places: the ``path`` of a ``test``, the ``from`` of ``copy`` and ``move``. Otherwise it
  is a ScopeError, which depends on the path and the inputs, never on the value.
* An existing value may be replaced or removed only if all of it is visible: otherwise the worker would lose values that
  it does not know.
* An index may lead through an array's element only if a part of that element is visible. An element may be inserted or
  removed only in an array that is shown whole, because that moves all elements behind it. ``-`` is always allowed.
* A place that the patch itself has written is visible from then on, even if it wrote that there is no value.

It follows that **no hidden value is ever moved, lost or compared**. So two objects that differ only in hidden scalars
have the same outcome, including all messages. If they also differ in which hidden members exist, a patch may be
rejected for one and applied to the other (a value in the way, or a missing parent); but if both are applied, the
visible parts of the results are the same. This also holds for a whole object, and for a merge patch with one exception:
it may remove or replace hidden members by name (see ``merging``). If its policy may not write them, it is rejected even
if they already have that value.

The messages name the missing input as a JSON Pointer over the AdmissionRequest, and use only tokens of the patch: the
names of hidden members are hidden, too.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from gateway.patching.draft import Draft, place
from gateway.patching.equality import Value
from gateway.patching.errors import PatchError, ScopeError, json_quoted, quoted
from gateway.patching.limits import PatchLimits
from gateway.scopes.inputs import OBJECT
from gateway.scopes.pointer import Pointer, array_index, format_pointer
from gateway.scopes.pointer_set import ANY, PointerSet

Children: TypeAlias = dict[str, Any] | list[Any] | None
"""The children of a container; None for a value that is no container."""

_WHOLE: Final = PointerSet([()])


class _Opened:
    """A view after a write of the patch: ``children`` are the written places, and ``rest`` is the original view."""

    __slots__ = ("children", "rest")
    whole: Final = False

    def __init__(self, rest: PointerSet | None) -> None:
        self.rest = rest
        self.children: dict[str, View] = {}

    def below(self, token: str) -> "View | None":
        child = self.children.get(token)
        if child is not None or self.rest is None:
            return child
        return self.rest.below(token)

    def covers(self, pointer: Pointer) -> bool:
        """The view of all children together: writes into some of them do not count."""
        return self.rest is not None and self.rest.covers(pointer)


View: TypeAlias = PointerSet | _Opened
"""What is visible at and below one place; None: nothing."""


def children_of(value: Value) -> Children:
    """The children of a decoded JSON value."""
    return value if type(value) is dict or type(value) is list else None


def missing(pointer: Pointer) -> str:
    """The input that would make a place of the object visible, and what to do, for messages."""
    lacking = quoted(f"/{OBJECT}{format_pointer(pointer)}")
    return f"the policy's inputs lack {lacking}; add it, or let the worker leave it alone"


def shows_array(view: View | None) -> bool:
    """Whether an array is shown whole: itself, or all of its elements."""
    return view is not None and (view.whole or view.covers((ANY,)))


class Visibility:
    """What is visible to one patch while it is applied.

    ``shown`` are places over the object. ``opened`` returns the children of a container of the document, in the form in
    which it is being patched. With ``arrays_whole``, no path may lead through an array that is not shown whole.
    """

    __slots__ = ("_arrays_whole", "_opened", "_view")

    def __init__(
        self, shown: PointerSet, *, opened: Callable[[Any], Children] = children_of, arrays_whole: bool = False
    ) -> None:
        self._view: View = shown
        self._opened = opened
        self._arrays_whole = arrays_whole

    def check_read(self, root: Any, pointer: Pointer) -> None:
        """Raise a ScopeError if ``pointer`` is not visible, a PatchError if no value can be there."""
        view: View | None = self._view
        for token in pointer:
            if view is None or view.whole:
                break
            view = view.below(token)
        if view is None or not view.whole:
            raise ScopeError(
                f"{place(pointer)} was not shown, and cannot be tested, copied or moved: {missing(pointer)}"
            )
        if pointer:
            self._check_path(root, pointer)

    def check_write(self, root: Any, pointer: Pointer, *, replaces: bool = False) -> None:
        """Raise a PatchError if a write at ``pointer`` would lose or shift hidden values.

        From then on the place is visible. ``replaces``: an array's element is replaced, not inserted or removed.
        """
        if not pointer:
            self._check_lost(root, self._view, pointer)
            self._view = _WHOLE
            return
        at, last = pointer[:-1], pointer[-1]
        container, view = self._descend(root, at)
        if view is not None and view.whole:
            return
        children = self._opened(container)
        if type(children) is list:
            if last == "-" and not self._arrays_whole:
                # Without the array's length, the worker cannot know the index of the appended element.
                own = None if view is None else (*at, str(len(children)))
            else:
                own = self._element(children, view, pointer, replaces=replaces)
        elif type(children) is dict:
            if last in children:
                self._check_lost(children[last], _below(view, last), pointer)
            # If the container is hidden, "-" may have been the end of an array.
            own = None if last == "-" and view is None else pointer
        else:
            raise _nothing(pointer, len(at))
        if own is not None:
            self._own(own)

    def _check_path(self, root: Any, pointer: Pointer) -> None:
        """Reject a pointer that names something else than what is visible, or leads through hidden elements.

        An input may name a member "-1", which kube-apiserver's library takes for an index of an array.
        """
        at = len(pointer) - 1
        container, view = self._descend(root, pointer[:-1])
        if view is not None and view.whole:
            return
        children = self._opened(container)
        if type(children) is list:
            if not shows_array(view):
                self._step(children, view, pointer, at)
        elif children is None:
            raise _nothing(pointer, at)

    def _element(self, array: list[Any], view: View | None, pointer: Pointer, *, replaces: bool) -> Pointer | None:
        """The place that is visible after the patch has written to an index."""
        if shows_array(view):
            return None
        at = len(pointer) - 1
        if not replaces or self._arrays_whole:
            raise _no_index(pointer, at)
        child, below = self._step(array, view, pointer, at)
        self._check_lost(child, below, pointer)
        return pointer

    def _descend(self, root: Any, pointer: Pointer) -> tuple[Any, View | None]:
        """The value at ``pointer`` and the view of it; if all of it is visible, its node does not matter."""
        node: Any = root
        view: View | None = self._view
        for at, token in enumerate(pointer):
            if view is not None and view.whole:
                break
            children = self._opened(node)
            if type(children) is list:
                if shows_array(view):
                    return None, _WHOLE
                node, view = self._step(children, view, pointer, at)
            elif type(children) is dict and token in children:
                node, view = children[token], _below(view, token)
            else:
                raise _nothing(pointer, at)
        return node, view

    def _step(self, array: list[Any], view: View | None, pointer: Pointer, at: int) -> tuple[Any, View]:
        """The element of an array that is not shown whole, and the view of it."""
        index, below = array_index(pointer[at]), _below(view, pointer[at])
        if self._arrays_whole or index is None or below is None:
            raise _no_index(pointer, at)
        if index >= len(array):
            raise _nothing(pointer, at)
        return array[index], below

    def _check_lost(self, value: Any, view: View | None, pointer: Pointer) -> None:
        if self._hides(value, view):
            raise PatchError(
                f"what stands at {place(pointer)} was not shown whole, and cannot be replaced or removed:"
                f" {missing(pointer)}"
            )

    def _hides(self, value: Any, view: View | None) -> bool:
        """Whether a part of an existing value is hidden."""
        if view is None:
            return True
        if view.whole:
            return False
        children = self._opened(value)
        if type(children) is dict:
            return any(self._hides(child, view.below(name)) for name, child in children.items())
        if type(children) is list:
            return any(self._hides(child, view.below(str(index))) for index, child in enumerate(children))
        return True

    def _own(self, pointer: Pointer) -> None:
        """Make the written place ``pointer`` visible from now on."""
        view = self._view
        if not isinstance(view, _Opened):
            view = self._view = _Opened(view)
        for token in pointer[:-1]:
            child = view.below(token)
            if child is not None and child.whole:
                return
            if not isinstance(child, _Opened):
                child = view.children[token] = _Opened(child)
            view = child
        view.children[pointer[-1]] = _WHOLE


class RestrictedDraft(Draft):
    """A draft of which only a part is visible."""

    __slots__ = ("_visibility",)

    def __init__(self, document: Value, patch: bytes, limits: PatchLimits, visibility: Visibility) -> None:
        super().__init__(document, patch, limits)
        self._visibility = visibility

    def read(self, target: Pointer) -> Value:
        """The value at ``target``, if it is visible."""
        self._visibility.check_read(self.root, target)
        return super().read(target)

    def put(self, value: Value, target: Pointer) -> None:
        """``add``, if it loses and shifts no hidden value."""
        self._visibility.check_write(self.root, target)
        super().put(value, target)

    def set(self, value: Value, target: Pointer) -> None:
        """``replace``, if it loses no hidden value."""
        self._visibility.check_write(self.root, target, replaces=True)
        super().set(value, target)

    def take(self, target: Pointer) -> Value:
        """``remove``, if it loses and shifts no hidden value."""
        self._visibility.check_write(self.root, target)
        return super().take(target)

    def move(self, source: Pointer, target: Pointer) -> None:
        """``move``, if the moved value is visible."""
        self._visibility.check_read(self.root, source)
        super().move(source, target)


def _below(view: View | None, token: str) -> View | None:
    return None if view is None else view.below(token)


def _nothing(pointer: Pointer, at: int) -> PatchError:
    """The same message for a hidden value in the way and for no value: it must not reveal the type."""
    return PatchError(f"there is no {json_quoted(pointer[at])} in {place(pointer[:at])}")


def _no_index(pointer: Pointer, at: int) -> PatchError:
    return PatchError(
        f"{place(pointer[:at])} is an array that was not shown whole, and {json_quoted(pointer[at])} cannot be used in "
        f'it ("-" appends): {missing(pointer[:at])}'
    )
