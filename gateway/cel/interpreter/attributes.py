"""Names, selections and indexes: ``object.spec.containers[0].image`` (cel-go's interpreter/attributes.go).

A chain of them is one thing, an ``Attribute``: where it begins, and the qualifiers that lead on from there. It is
walked in one go over the decoded JSON, and nothing else of it is touched or converted.

* A key that is not there: ``no such key``; an index: ``index out of bounds``; a value that has no members: ``no such
  key``.
* From the first ``?`` on, what is not there makes the value ``optional.none()``, and what is there an optional.
* A chain that begins at an optional goes on within it.
* ``has(a.b)`` is a chain whose last qualifier only tests for presence.

Each qualifier costs 1, and so does the beginning, unless the chain is a branch of ``? :`` or itself an index.
"""

from typing import Any, Final

import msgspec

from gateway.cel.interpreter.frame import Frame, Run
from gateway.cel.values.containers import MISSING, NONE, Map, Optional
from gateway.cel.values.display import display, go_type_name
from gateway.cel.values.faults import Fault, no_such_overload
from gateway.cel.values.numbers import LARGEST_INT, SMALLEST_INT, Uint, adapted, lossless
from gateway.cel.values.reflection import named

_KEYS: Final = frozenset({str, int, Uint, bool, float})
"""Kinds of values that can be qualifiers."""


def check_key(key: Any) -> None:
    """Refuse what cannot be a qualifier, in the words of Go, which knows these values by other names."""
    if type(key) not in _KEYS:
        raise Fault(f"invalid qualifier type: {go_type_name(key)}")


class Qualifier(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """``key``, or ``run`` that evaluates it. ``optional``: ``.?key``, ``[?key]``. ``test``: ``has()``."""

    key: Any = None
    run: Run | None = None
    optional: bool = False
    test: bool = False


class Attribute(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """``start`` evaluates where the chain begins; or, of ``? :``, ``choice`` which of the two ``branches``.

    ``test``: it is a ``has()`` itself, whatever its branches are.
    """

    start: Run | None = None
    choice: Run | None = None
    branches: tuple["Attribute", "Attribute"] | None = None
    qualifiers: tuple[Qualifier, ...] = ()
    test: bool = False

    def extended(self, qualifier: Qualifier) -> "Attribute":
        """The chain with one more qualifier; of ``? :``, both branches."""
        if self.branches is not None:
            first, second = self.branches
            branches = (first.extended(qualifier), second.extended(qualifier))
            return msgspec.structs.replace(self, branches=branches, test=qualifier.test)
        return msgspec.structs.replace(self, qualifiers=(*self.qualifiers, qualifier), test=qualifier.test)


def value_of(attribute: Attribute) -> Run:
    """The chain as an expression of its own."""
    walk = resolver(attribute)
    own = (attribute.branches is None) - attribute.test
    if attribute.test:
        return _tested(walk, own)
    if own == 0:
        return walk

    def run(frame: Frame) -> Any:
        frame.cost += 1
        return walk(frame)

    return run


def _tested(walk: Run, own: int) -> Run:
    def run(frame: Frame) -> bool:
        found = walk(frame)
        frame.cost += own
        return found.present if isinstance(found, Optional) else found

    return run


def resolver(attribute: Attribute) -> Run:
    """The chain as part of something else: its beginning costs nothing."""
    if attribute.branches is not None and attribute.choice is not None:
        return _choice(attribute.choice, *map(resolver, attribute.branches))
    if attribute.start is None:
        raise TypeError(attribute)
    if not attribute.qualifiers:
        return attribute.start
    simple = all(
        type(qualifier.key) is str and not (qualifier.optional or qualifier.test or qualifier.run)
        for qualifier in attribute.qualifiers
    )
    if not simple:
        return _chain(attribute.start, attribute.qualifiers)
    return _members(attribute.start, tuple(qualifier.key for qualifier in attribute.qualifiers), attribute.qualifiers)


def _choice(choice: Run, then: Run, otherwise: Run) -> Run:
    def run(frame: Frame) -> Any:
        chosen = choice(frame)
        if chosen is True:
            return then(frame)
        if chosen is False:
            return otherwise(frame)
        raise no_such_overload()

    return run


def _members(start: Run, keys: tuple[str, ...], qualifiers: tuple[Qualifier, ...]) -> Run:
    """The usual case, ``a.b.c``, made fast."""

    def run(frame: Frame) -> Any:
        value = start(frame)
        if type(value) is Optional:
            return _walk(frame, value, qualifiers)
        for key in keys:
            frame.cost += 1
            if type(value) is dict:
                value = value.get(key, MISSING)
                if value is MISSING:
                    raise Fault(f"no such key: {key}")
            else:
                value = qualify(value, key)
        return adapted(value)

    return run


def _chain(start: Run, qualifiers: tuple[Qualifier, ...]) -> Run:
    return lambda frame: _walk(frame, start(frame), qualifiers)


def _walk(frame: Frame, value: Any, qualifiers: tuple[Qualifier, ...]) -> Any:
    optional = isinstance(value, Optional)
    if isinstance(value, Optional):
        if not value.present:
            return value
        value = value.value
    for qualifier in qualifiers:
        optional = optional or qualifier.optional
        key = qualifier.key if qualifier.run is None else qualifier.run(frame)
        frame.cost += not optional
        if qualifier.run is not None:
            check_key(key)
        if not optional and not qualifier.test:
            value = qualify(value, key)
            continue
        value = probe(value, key)
        if not optional:
            return value is not MISSING
        if value is MISSING:
            return NONE
        frame.cost += 1
    value = adapted(value)
    return Optional(value) if optional else value


def qualify(value: Any, key: Any) -> Any:
    """What a key or an index leads to; a Fault if it leads nowhere."""
    found = probe(value, key)
    if found is MISSING:
        what = "index out of bounds" if isinstance(value, list) else "no such key"
        raise Fault(f"{what}: {display(key)}")
    return found


def probe(value: Any, key: Any) -> Any:
    """What a key or an index leads to, or MISSING; a Fault if a list has no such kind of index."""
    if isinstance(value, dict):
        return value.get(key, MISSING) if type(key) is str else MISSING
    if isinstance(value, Map):
        return value.find(key)
    if isinstance(value, list):
        index = _index(key)
        return value[index] if 0 <= index < len(value) else MISSING
    return MISSING


def _index(key: Any) -> int:
    """cel-go's IndexOrError."""
    if isinstance(key, bool) or not isinstance(key, int | float):
        raise Fault(f"unsupported index type '{named(key)}' in list")
    whole = lossless(key) if isinstance(key, float) else int(key)
    if whole is None or not SMALLEST_INT <= whole <= LARGEST_INT:
        raise Fault(f"unsupported index value {display(key)} in list")
    return whole
