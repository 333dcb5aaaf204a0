"""``'%s-%d'.format(['a', 1])`` (cel-go's ext/formatting.go, of the version that Kubernetes has, in en_US).

====  =================================================================================================
``%``   arguments
====  =================================================================================================
s     all but opaque values; lists and maps with their strings quoted, maps in the order of their keys
d     int, uint
f, e  double, or one of the strings NaN, Infinity, -Infinity; ``%.3f`` with commas between thousands
b     int, uint, bool
x, X  int, uint; string and bytes byte by byte
o     int, uint
====  =================================================================================================

The walk over the clauses is the same when compiling (``Arguments`` are then types) and when evaluating.
"""

import math
from collections.abc import Callable
from typing import Any, Final, Protocol

from gateway.cel.budget import PER_STEP
from gateway.cel.libraries.conversions import as_string
from gateway.cel.libraries.operators import too_large
from gateway.cel.libraries.overloads import Library, member
from gateway.cel.values.containers import is_map, items
from gateway.cel.values.durations import Duration
from gateway.cel.values.equality import Effort
from gateway.cel.values.faults import Fault
from gateway.cel.values.numbers import adapted
from gateway.cel.values.reflection import named
from gateway.cel.values.strconv import go_quoted
from gateway.cel.values.timestamps import Timestamp
from gateway.cel.values.types import Type

_PRECISION: Final = 6
_SUPERSCRIPTS: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_SPECIAL: Final = frozenset({"NaN", "Infinity", "-Infinity"})

COMPLAINTS: Final = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and"
    " timestamps, was given {}",
    "d": "decimal clause can only be used on integers, was given {}",
    "f": "fixed-point clause can only be used on doubles, was given {}",
    "e": "scientific clause can only be used on doubles, was given {}",
    "b": "only integers and bools can be formatted as binary, was given {}",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given {}",
    "o": "octal clause can only be used on integers, was given {}",
}
"""By clause; ``{}`` is the type's name."""


class Malformed(Exception):  # noqa: N818 - it is named after what the text is
    """The format string is wrong, or an argument does not go with its clause."""


class Formatter(Protocol):
    """What is done with each clause: write a value, or check a type."""

    def __call__(self, clause: str, precision: int | None, index: int) -> str:
        """What stands in place of the clause; raises Malformed."""


def interpolate(text: str, count: int, formatter: Formatter, *, checking: bool = False) -> tuple[str, int]:
    """Walk over a format string for ``count`` arguments: what it becomes, and how many clauses it has.

    Raises Malformed with cel-go's words; which of two errors comes first differs when ``checking``.
    """
    pieces: list[str] = []
    position = used = size = 0
    while (percent := text.find("%", position)) >= 0:
        pieces.append(text[position:percent])
        if text[percent + 1 : percent + 2] == "%":
            pieces.append("%")
            position = percent + 2
            continue
        if percent + 1 >= len(text) and (checking or used < count):
            raise Malformed("unexpected end of string")
        if used >= count:
            raise Malformed(f"index {used} out of range")
        clause, precision, position = _clause(text, percent + 1)
        pieces.append(formatter(clause, precision, used))
        size += len(pieces[-1])
        too_large(size)
        used += 1
    return "".join([*pieces, text[position:]]), used


def _clause(text: str, start: int) -> tuple[str, int | None, int]:
    precision, index = None, start
    wrong = "could not parse formatting clause: "
    if text[index] == ".":
        index += 1
        first = index
        while index < len(text) and text[index] in "0123456789":
            index += 1
        if index >= len(text):
            raise Malformed(f"{wrong}error while parsing precision: could not find end of precision specifier")
        digits = text[first:index]
        if not digits:
            problem = 'error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax'
            raise Malformed(f"{wrong}error while parsing precision: {problem}")
        precision = min(int(digits.lstrip("0")[:9] or 0), _MOST_PRECISE)
    letter = text[index]
    if letter.lower() not in COMPLAINTS or (letter.isupper() and letter != "X"):
        shown = letter if letter.isascii() else chr(letter.encode()[0])
        raise Malformed(f'{wrong}unrecognized formatting clause "{shown}"')
    return letter, precision, index + 1


_MOST_PRECISE: Final = 1_000_000
"""Go's own limit on a precision."""


# ------------------------------------------------------------------------------------------- of values
def _format(text: str, values: list[Any], effort: Effort) -> str:
    def write(clause: str, precision: int | None, index: int) -> str:
        try:
            value = adapted(values[index])
            _pay(value, effort)
            return _WRITERS[clause](value, precision)
        except Malformed as error:
            raise Malformed(f"error during formatting: {error}") from error

    try:
        return interpolate(text, len(values), write)[0]
    except Malformed as error:
        raise Fault(str(error)) from error


_WRITTEN: Final = 6
"""Steps of writing a value."""


def _pay(value: Any, effort: Effort) -> None:
    """The effort of writing a value, before anything is written: a format string costs only what its own length is.

    Each element counts, and each text by its length: the same large string may stand in a list a thousand times.
    """
    if isinstance(value, str | bytes):
        effort(_WRITTEN + len(value) // PER_STEP)
    elif isinstance(value, list):
        effort(_WRITTEN + len(value))
        for element in value:
            _pay(element, effort)
    elif is_map(value):
        effort(_WRITTEN)
        for key, found in items(value):
            _pay(key, effort)
            _pay(found, effort)
    else:
        effort(_WRITTEN)


def _unfit(clause: str, value: Any) -> Malformed:
    return Malformed(COMPLAINTS[clause].format(named(value)))


def _string(value: Any, _precision: int | None = None) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{', '.join(_element(adapted(element)) for element in value)}]"
    if is_map(value):
        pairs = sorted((_key(key), _element(found)) for key, found in items(value))
        return f"{{{', '.join(f'{key}:{found}' for key, found in pairs)}}}"
    if isinstance(value, bool | int | float | str | bytes | Timestamp | Duration | Type):
        try:
            return as_string(value)
        except Fault as fault:
            raise Malformed(f"could not convert argument {go_quoted(fault.message)} to string") from fault
    raise _unfit("s", value)


def _key(key: Any) -> str:
    if isinstance(key, str):
        return go_quoted(key)
    if isinstance(key, bool | int):
        return as_string(key)
    raise Malformed(f"no formatting function for map key of type {named(key)}")


def _element(value: Any) -> str:  # noqa: PLR0911 - one return for each kind
    """A value within a list or a map."""
    if isinstance(value, str):
        return go_quoted(value)
    if isinstance(value, bytes):
        return f"b{go_quoted(_string(value))}"
    if isinstance(value, Timestamp):
        return f"timestamp({go_quoted(as_string(value))})"
    if isinstance(value, Duration):
        return f"duration({go_quoted(as_string(value))})"
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            return '"NaN"' if math.isnan(value) else ('"+Inf"' if value > 0 else '"-Inf"')
        return f"{value:.{_PRECISION}f}"
    if value is None or isinstance(value, bool | int | Type | list) or is_map(value):
        return _string(value)
    raise Malformed(f"no formatting function for {named(value)}")


def _decimal(value: Any, _precision: int | None = None) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _unfit("d", value)
    return str(int(value))


def _double(clause: str, value: Any) -> float:
    if isinstance(value, str) and value in _SPECIAL:
        return float(value)
    if not isinstance(value, float):
        raise _unfit(clause, value)
    return value


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else ("∞" if value > 0 else "-∞")


def _fixed(value: Any, precision: int | None) -> str:
    number = _double("f", value)
    if not math.isfinite(number):
        return _not_finite(number)
    return f"{number or 0.0:,.{_PRECISION if precision is None else precision}f}"  # -0.0 is 0


def _scientific(value: Any, precision: int | None) -> str:
    """Always six digits: cel-go takes the precision for a width."""
    number, width = _double("e", value), _PRECISION if precision is None else precision
    if not math.isfinite(number):
        return _not_finite(number).rjust(width)
    mantissa, _, exponent = f"{number or 0.0:.{_PRECISION}e}".partition("e")
    digits = f"{'-' if exponent[0] == '-' else ''}{exponent[1:]}"
    return f"{mantissa}×10{digits.translate(_SUPERSCRIPTS)}".rjust(width)


def _binary(value: Any, _precision: int | None) -> str:
    if not isinstance(value, int):
        raise _unfit("b", value)
    return f"{int(value):b}"


def _octal(value: Any, _precision: int | None) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _unfit("o", value)
    return f"{int(value):o}"


def _hexadecimal(value: Any, _precision: int | None) -> str:
    if isinstance(value, str):
        return value.encode(errors="replace").hex()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, bool) or not isinstance(value, int):
        raise _unfit("x", value)
    return f"{int(value):x}"


def _upper_hexadecimal(value: Any, precision: int | None) -> str:
    return _hexadecimal(value, precision).upper()


_WRITERS: Final[dict[str, Callable[[Any, int | None], str]]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "x": _hexadecimal,
    "X": _upper_hexadecimal,
    "o": _octal,
}

FORMATTING: Final = Library(
    overloads=(member("string_format", "string.format(list(dyn)) -> string", _format, effortful=True),)
)
