"""Which types go together (cel-go's checker/types.go).

``Substitutions`` say what type parameters stand for. An attempt that fails leaves no trace in them: it is undone. (To
attempt with a copy would take time with the square of an expression's length.)
"""

from collections.abc import Sequence

from gateway.cel.values.types import DYN, OPTIONAL_NAME, Kind, Type, made_of

Substitutions = dict[Type, Type]
"""Type parameter to type."""

_Trail = list[tuple[Type, Type | None]]
"""Type parameters that an attempt changed, with what they stood for before."""

_NULLABLE = frozenset({Kind.OPAQUE, Kind.MESSAGE, Kind.TIME, Kind.NULL})
_INNER = frozenset({Kind.OPAQUE, Kind.LIST, Kind.MAP, Kind.TYPE})


def is_dyn_or_error(kind: Type) -> bool:
    """Whether nothing is known of a type."""
    return kind.kind in {Kind.DYN, Kind.ERROR}


def unwrap_optional(kind: Type) -> tuple[Type, bool]:
    """The type within an optional, and whether it was one."""
    if kind.kind is Kind.OPAQUE and kind.name == OPTIONAL_NAME:
        return kind.parameters[0], True
    return kind, False


def assign(known: Substitutions, given: Sequence[Type], wanted: Sequence[Type]) -> bool:
    """Whether the given types fit the wanted ones, one by one; if so, ``known`` has what makes them fit."""
    trail: _Trail = []
    if _all_assignable(known, trail, given, wanted):
        return True
    for parameter, before in reversed(trail):
        if before is None:
            del known[parameter]
        else:
            known[parameter] = before
    return False


def _all_assignable(known: Substitutions, trail: _Trail, given: Sequence[Type], wanted: Sequence[Type]) -> bool:
    if len(given) != len(wanted):
        return False
    return all(_assignable(known, trail, one, other) for one, other in zip(given, wanted, strict=True))


def _assignable(known: Substitutions, trail: _Trail, given: Type, wanted: Type) -> bool:  # noqa: PLR0911 - a table of cases
    if wanted.kind is Kind.PARAMETER:
        valid, bound = _substitutable(known, trail, given, wanted)
        if valid or bound:
            return valid
    if given.kind is Kind.PARAMETER:
        return _substitutable(known, trail, wanted, given)[0]
    if is_dyn_or_error(given) or is_dyn_or_error(wanted):
        return True
    if given.kind is Kind.NULL or wanted.kind is Kind.NULL:
        other = wanted if given.kind is Kind.NULL else given
        return other.kind in _NULLABLE
    if given.kind is Kind.TYPE:
        return wanted.kind is Kind.TYPE
    if given.kind in _INNER:
        same = given.kind is wanted.kind and given.name == wanted.name
        return same and _all_assignable(known, trail, given.parameters, wanted.parameters)
    return given.kind is wanted.kind and given.name == wanted.name


def _substitutable(known: Substitutions, trail: _Trail, given: Type, parameter: Type) -> tuple[bool, bool]:
    """Whether a parameter can stand for a type, and whether it already stood for one. Notes what it stands for."""
    if given == parameter:
        return True, True
    bound = known.get(parameter)
    if bound is not None:
        if given == bound:
            return True, True
        if not _assignable(known, trail, given, bound):
            return False, True
        general = most_general(given, bound)
        if _free_of(known, parameter, general):
            trail.append((parameter, known.get(parameter)))
            known[parameter] = general
        return True, True
    if _free_of(known, parameter, given):
        trail.append((parameter, None))
        known[parameter] = given
        return True, False
    return False, False


def _free_of(known: Substitutions, parameter: Type, within: Type) -> bool:
    """Whether a parameter does not occur in a type ("occurs check")."""
    if parameter == within:
        return False
    if within.kind is Kind.PARAMETER:
        bound = known.get(within)
        return bound is None or _free_of(known, parameter, bound)
    return all(_free_of(known, parameter, inner) for inner in within.parameters)


def most_general(one: Type, other: Type) -> Type:
    """Of two types that go together the one that says less."""
    return one if _says_no_more(one, other) else other


def _says_no_more(one: Type, other: Type) -> bool:
    if one.kind in {Kind.DYN, Kind.PARAMETER}:
        return True
    if other.kind in {Kind.DYN, Kind.PARAMETER} or one.kind is not other.kind:
        return False
    if one.kind is Kind.TYPE:
        return True
    if one.name != other.name or len(one.parameters) != len(other.parameters):
        return False
    return all(_says_no_more(left, right) for left, right in zip(one.parameters, other.parameters, strict=True))


def substitute(known: Substitutions, kind: Type, *, finally_dyn: bool = False) -> Type:
    """A type with what its parameters stand for; those that stand for nothing become dyn if ``finally_dyn``."""
    while (bound := known.get(kind)) is not None:
        kind = bound
    if kind.kind is Kind.PARAMETER:
        return DYN if finally_dyn else kind
    if not kind.parameters:
        return kind
    inner = tuple(substitute(known, parameter, finally_dyn=finally_dyn) for parameter in kind.parameters)
    return made_of(kind.kind, kind.name, inner)


def equivalent(one: Type, other: Type) -> bool:
    """The same type but for the names of parameters."""
    if one.kind is not other.kind or len(one.parameters) != len(other.parameters):
        return False
    if one.kind is not Kind.PARAMETER and one.name != other.name:
        return False
    return all(equivalent(left, right) for left, right in zip(one.parameters, other.parameters, strict=True))
