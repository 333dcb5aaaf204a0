"""Values in error messages, as Go prints cel-go's values and the names of their types."""

import math
from decimal import Decimal
from typing import Any, Final

from gateway.cel.values.containers import Optional, is_map, items
from gateway.cel.values.numbers import Uint
from gateway.cel.values.reflection import named

_PLAIN: Final = range(-4, 6)
"""Exponents of ten that Go's %g does not write."""

_GO_NAMES: Final = {
    "int": "types.Int",
    "uint": "types.Uint",
    "double": "types.Double",
    "bool": "types.Bool",
    "string": "types.String",
    "bytes": "types.Bytes",
    "null_type": "types.Null",
    "google.protobuf.Timestamp": "types.Timestamp",
    "google.protobuf.Duration": "types.Duration",
    "list": "*types.baseList",
    "map": "*types.baseMap",
    "type": "*types.Type",
    "optional_type": "*types.Optional",
    "net.IP": "cel.IP",
    "net.CIDR": "cel.CIDR",
    "kubernetes.URL": "cel.URL",
    "kubernetes.Quantity": "cel.Quantity",
    "kubernetes.Semver": "cel.Semver",
    "kubernetes.NamedFormat": "cel.Format",
}


def go_type_name(value: Any) -> str:
    """The type of a value, as ``%T`` prints it."""
    return _GO_NAMES.get(named(value), named(value))


def display(value: Any) -> str:  # noqa: PLR0911 - one return for each kind
    """A value as ``%v`` prints it: a key, an index."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Uint):
        return str(int(value))
    if isinstance(value, float):
        return display_double(value)
    if value is None:
        return "NULL_VALUE"
    if isinstance(value, bytes):
        return f"[{' '.join(map(str, value))}]"
    if isinstance(value, list):
        return f"[{', '.join(map(display, value))}]"
    if is_map(value):
        return f"{{{', '.join(f'{display(key)}: {display(found)}' for key, found in items(value))}}}"
    if isinstance(value, Optional):
        return f"optional({display(value.value)})" if value.present else "optional.none()"
    return str(value)


def display_double(value: float) -> str:
    """Go's %g: the shortest digits that give the same double, with an exponent if it is large or small."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    _, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    scientific = len(digits) + int(exponent) - 1
    if scientific in _PLAIN:
        return plain_double(value)
    first, *rest = map(str, digits)
    fraction = f".{''.join(rest)}" if rest else ""
    sign, direction = "-" if value < 0 else "", "-" if scientific < 0 else "+"
    return f"{sign}{first}{fraction}e{direction}{abs(scientific):02}"


def plain_double(value: float) -> str:
    """The shortest digits that give the same double, without an exponent; not of infinity and NaN."""
    return format(Decimal(repr(value)).normalize(), "f")
