"""What a patch may read and move, where its worker was shown only a part of the object.

A worker answers about its document, but its patch is applied to the real object. Without a rule the patch would read
what the document hid: ``copy`` a password into a label, ``test`` it until the answer changes, move a hidden element to
an index that is shown. So:

* What a patch reads lies in sight: the ``path`` of a ``test``, the ``from`` of ``copy`` and ``move``. Else it is a
  ScopeError, which depends on the path and on what was shown, never on what stands there.
* An existing value is replaced or removed only if all of it was shown: else it would be lost by one who does not know
  it.
* An array index passes through an element only if something in that element was shown. An element is inserted or
  removed only in an array that is shown whole, since that moves all behind it. ``-`` is always fine.
* What the patch itself has written somewhere is in sight there from then on, be it a value or that there is none.

It follows that **no hidden value ever changes its place, is lost, or is compared with anything**. So two objects that
differ in nothing but hidden scalars give the same outcome, to the last word of a message. If they also differ in which
hidden members there are, one patch may be refused and the other applied (something in the way, or no parent there);
but where both are applied, what is shown of the results is the same. That holds for a whole object as well, and for a
merge patch but for one thing: that may remove or replace hidden members by their names (see ``merging``). Where its
policy may not write them, it is refused although they may have that very value already.

The messages name the input that is missing, as a JSON Pointer over the AdmissionRequest, and only in the patch's own
words: the names of hidden members are hidden, too.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from gateway.patching.draft import Draft, place
from gateway.patching.equality import Value
from gateway.patching.errors import PatchError, ScopeError, quoted, shown
from gateway.patching.limits import PatchLimits
from gateway.scopes.inputs import OBJECT
from gateway.scopes.pointer import Pointer, array_index, format_pointer
from gateway.scopes.pointer_set import ANY, PointerSet

Children: TypeAlias = dict[str, Any] | list[Any] | None
"""What stands in a container; None for a value that is none."""

_WHOLE: Final = PointerSet([()])


class _Opened:
    """A view into which the patch has written: ``children`` are its own places, and ``rest`` is as it was shown."""

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
        """Asked for every child at once: what was written into some does not count."""
        return self.rest is not None and self.rest.covers(pointer)


View: TypeAlias = PointerSet | _Opened
"""What is in sight at and below one place; None in its stead: nothing is."""


def children_of(value: Value) -> Children:
    """What stands in a decoded JSON value."""
    return value if type(value) is dict or type(value) is list else None


def missing(pointer: Pointer) -> str:
    """The input that would show a place of the object, as a message names it, and what to do."""
    lacking = shown(f"/{OBJECT}{format_pointer(pointer)}")
    return f"the policy's inputs lack {lacking}; add it, or let the worker leave it alone"


def shows_array(view: View | None) -> bool:
    """Whether an array is shown whole: itself, or each of its elements, whichever they are."""
    return view is not None and (view.whole or view.covers((ANY,)))


class Visibility:
    """What is in sight of one patch, while it is applied.

    ``shown`` are places over the object. ``opened`` tells what stands in a container of the document, in the form in
    which it is being patched. With ``arrays_whole`` an array may not even be passed through if it is not shown whole.
    """

    __slots__ = ("_arrays_whole", "_opened", "_view")

    def __init__(
        self, shown: PointerSet, *, opened: Callable[[Any], Children] = children_of, arrays_whole: bool = False
    ) -> None:
        self._view: View = shown
        self._opened = opened
        self._arrays_whole = arrays_whole

    def check_read(self, root: Any, pointer: Pointer) -> None:
        """Refuse to read what is not in sight: a ScopeError. A PatchError, if nothing can stand there."""
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
        """Refuse, with a PatchError, to write at ``pointer`` what would lose or shift something hidden.

        From then on the place is in sight. ``replaces``: an array's element is exchanged, not inserted or removed.
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
                # Only who knows its length can know the index of what was appended.
                own = None if view is None else (*at, str(len(children)))
            else:
                own = self._element(children, view, pointer, replaces=replaces)
        elif type(children) is dict:
            if last in children:
                self._check_lost(children[last], _below(view, last), pointer)
            # To one who was not shown the container, "-" may have been the end of an array.
            own = None if last == "-" and view is None else pointer
        else:
            raise _nothing(pointer, len(at))
        if own is not None:
            self._own(own)

    def _check_path(self, root: Any, pointer: Pointer) -> None:
        """Refuse a pointer that names something else than what was shown, or leads through what was not.

        An input may call a member "-1", which kube-apiserver's library takes for an index; that was not what was shown.
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
        """The place that the patch may call its own, after it has written to an index."""
        if shows_array(view):
            return None
        at = len(pointer) - 1
        if not replaces or self._arrays_whole:
            raise _no_index(pointer, at)
        child, below = self._step(array, view, pointer, at)
        self._check_lost(child, below, pointer)
        return pointer

    def _descend(self, root: Any, pointer: Pointer) -> tuple[Any, View | None]:
        """What stands at ``pointer`` and what is in sight of it; where all is in sight, its node does not matter."""
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
        """The element of an array that is not shown whole, and what is in sight of it."""
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
        """Whether a part of an existing value is not in sight."""
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
        """What is written at ``pointer`` is in sight from now on."""
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
    """A draft of which only a part is in sight."""

    __slots__ = ("_visibility",)

    def __init__(self, document: Value, patch: bytes, limits: PatchLimits, visibility: Visibility) -> None:
        super().__init__(document, patch, limits)
        self._visibility = visibility

    def read(self, target: Pointer) -> Value:
        """The value at ``target``, if it is in sight."""
        self._visibility.check_read(self.root, target)
        return super().read(target)

    def put(self, value: Value, target: Pointer) -> None:
        """``add``, if that loses and shifts nothing hidden."""
        self._visibility.check_write(self.root, target)
        super().put(value, target)

    def set(self, value: Value, target: Pointer) -> None:
        """``replace``, if that loses nothing hidden."""
        self._visibility.check_write(self.root, target, replaces=True)
        super().set(value, target)

    def take(self, target: Pointer) -> Value:
        """``remove``, if that loses and shifts nothing hidden."""
        self._visibility.check_write(self.root, target)
        return super().take(target)

    def move(self, source: Pointer, target: Pointer) -> None:
        """``move``, if what is moved is in sight."""
        self._visibility.check_read(self.root, source)
        super().move(source, target)


def _below(view: View | None, token: str) -> View | None:
    return None if view is None else view.below(token)


def _nothing(pointer: Pointer, at: int) -> PatchError:
    """In the same words whether something hidden is in the way, or there is nothing: it must not tell the kind."""
    return PatchError(f"there is no {quoted(pointer[at])} in {place(pointer[:at])}")


def _no_index(pointer: Pointer, at: int) -> PatchError:
    return PatchError(
        f"{place(pointer[:at])} is an array that was not shown whole, and {quoted(pointer[at])} cannot be used in it"
        f' ("-" appends): {missing(pointer[:at])}'
    )
