"""Conversions between types: ``int('1')``, ``string(1)``, ``type(x)`` (cel-go's ConvertToType).

A value that cannot be converted is ``type conversion error from 'string' to 'int'``; a number out of range is an
overflow. Where the argument is a constant, that error is one of compiling: see ``plan``.
"""

import math
import re
from collections.abc import Callable
from typing import Any, Final

from gateway.cel.libraries.overloads import Library, function
from gateway.cel.values import types
from gateway.cel.values.durations import Duration, DurationError, parse_duration
from gateway.cel.values.faults import Fault
from gateway.cel.values.numbers import LARGEST_INT, LARGEST_UINT, SMALLEST_INT, Uint
from gateway.cel.values.reflection import type_of
from gateway.cel.values.strconv import go_double, plain_double
from gateway.cel.values.timestamps import Timestamp, parse_timestamp, timestamp, timestamp_text
from gateway.cel.values.types import Type

CONVERSIONS_BY_NAME: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
"""Functions that are evaluated when compiling if their argument is a constant (cel-go's IsTypeConversionFunction)."""

_BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}
_DIGITS: Final = "[0-9]+(?:_[0-9]+)*"
_DECIMAL: Final = re.compile(rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?")
_HEXADECIMAL: Final = re.compile(r"([+-]?)0[xX]([0-9a-fA-F_]*)(?:\.([0-9a-fA-F_]*))?[pP]([+-]?[0-9]+)")
_SPECIAL: Final = re.compile(r"[+-]?(?:inf|infinity)|nan", re.IGNORECASE)


def unconvertible(value: Any, wanted: Type) -> Fault:
    """There is no such conversion, or not of this value."""
    return Fault(f"type conversion error from '{type_of(value).name}' to '{wanted.name}'")


def _identity(value: Any) -> Any:
    return value


def _int_from_string(text: str) -> int:
    match = re.fullmatch(r"([+-]?)0*([0-9]{1,19})", text)
    value = int(match[1] + match[2]) if match else LARGEST_INT + 1
    if not SMALLEST_INT <= value <= LARGEST_INT:
        raise unconvertible(text, types.INT)
    return value


def _uint_from_string(text: str) -> Uint:
    match = re.fullmatch(r"0*([0-9]{1,20})", text)
    value = int(match[1]) if match else LARGEST_UINT + 1
    if value > LARGEST_UINT:
        raise unconvertible(text, types.UINT)
    return Uint(value)


def _int_from_double(value: float) -> int:
    if not math.isfinite(value) or not SMALLEST_INT < value < LARGEST_INT:
        raise Fault("integer overflow")
    return int(value)


def _uint_from_double(value: float) -> Uint:
    if not math.isfinite(value) or not 0 <= value < 2.0**64:
        raise Fault("unsigned integer overflow")
    return Uint(int(value))


def _int_from_uint(value: Uint) -> int:
    if value > LARGEST_INT:
        raise Fault("integer overflow")
    return int(value)


def _uint_from_int(value: int) -> Uint:
    if value < 0:
        raise Fault("unsigned integer overflow")
    return Uint(value)


def double_from_string(text: str) -> float:
    """A number as Go's strconv.ParseFloat reads it: decimal, hexadecimal, inf, nan."""
    value = math.nan
    if _DECIMAL.fullmatch(text):
        value = float(text.replace("_", ""))
    elif hexadecimal := _HEXADECIMAL.fullmatch(text):
        value = _hexadecimal(*hexadecimal.groups())
    elif _SPECIAL.fullmatch(text):
        return float(text)
    else:
        raise unconvertible(text, types.DOUBLE)
    if math.isinf(value):
        raise unconvertible(text, types.DOUBLE)
    return value


def _hexadecimal(sign: str, whole: str, fraction: str | None, exponent: str) -> float:
    text = f"{sign}0x{whole.replace('_', '')}.{(fraction or '').replace('_', '')}p{exponent}"
    try:
        return float.fromhex(text)
    except (OverflowError, ValueError):
        return math.inf


def _bool_from_string(text: str) -> bool:
    if text not in _BOOLEANS:
        raise unconvertible(text, types.BOOL)
    return _BOOLEANS[text]


def _string_from_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise Fault("invalid UTF-8 in bytes, cannot convert to string") from error


def string_from_duration(value: Duration) -> str:
    """Seconds without an exponent, and ``s``: ``3600s``, ``0.5s``."""
    return f"{plain_double(value.seconds)}s"


def _timestamp_from_string(text: str) -> Timestamp:
    moment = parse_timestamp(text)
    if moment is None:
        raise unconvertible(text, types.TIMESTAMP)
    return moment


def _duration_from_string(text: str) -> Duration:
    try:
        return parse_duration(text)
    except DurationError:
        raise unconvertible(text, types.DURATION) from None


def _no_duration(value: int) -> Duration:
    """It is declared, but cel-go has no such conversion."""
    raise unconvertible(value, types.DURATION)


def _int_from_duration(value: Duration) -> int:
    return value.nanoseconds


def _seconds(value: Timestamp) -> int:
    return value.seconds


def as_string(value: Any) -> str:
    """``string(value)`` of a kind that has one; raises Fault for bytes that are no text."""
    return _STRINGS[type(value)](value)


_STRINGS: Final[dict[type, Callable[[Any], str]]] = {
    str: _identity,
    bool: lambda value: "true" if value else "false",
    bytes: _string_from_bytes,
    float: go_double,
    Duration: string_from_duration,
    int: str,
    Timestamp: timestamp_text,
    Uint: lambda value: str(int(value)),
    type(None): lambda _value: "null",
    Type: lambda value: value.name,
}

CONVERSIONS: Final = Library(
    overloads=(
        function("bool_to_bool", "bool(bool) -> bool", _identity),
        function("string_to_bool", "bool(string) -> bool", _bool_from_string),
        function("bytes_to_bytes", "bytes(bytes) -> bytes", _identity),
        function("string_to_bytes", "bytes(string) -> bytes", lambda text: text.encode()),
        function("double_to_double", "double(double) -> double", _identity),
        function("int64_to_double", "double(int) -> double", float),
        function("string_to_double", "double(string) -> double", double_from_string),
        function("uint64_to_double", "double(uint) -> double", float),
        function("duration_to_duration", "duration(duration) -> duration", _identity),
        function("int64_to_duration", "duration(int) -> duration", _no_duration),
        function("string_to_duration", "duration(string) -> duration", _duration_from_string),
        function("to_dyn", "dyn(A) -> dyn", _identity),
        function("int64_to_int64", "int(int) -> int", _identity),
        function("double_to_int64", "int(double) -> int", _int_from_double),
        function("duration_to_int64", "int(duration) -> int", _int_from_duration),
        function("string_to_int64", "int(string) -> int", _int_from_string),
        function("timestamp_to_int64", "int(timestamp) -> int", _seconds),
        function("uint64_to_int64", "int(uint) -> int", _int_from_uint),
        function("string_to_string", "string(string) -> string", _identity),
        function("bool_to_string", "string(bool) -> string", as_string),
        function("bytes_to_string", "string(bytes) -> string", as_string),
        function("double_to_string", "string(double) -> string", as_string),
        function("duration_to_string", "string(duration) -> string", as_string),
        function("int64_to_string", "string(int) -> string", as_string),
        function("timestamp_to_string", "string(timestamp) -> string", as_string),
        function("uint64_to_string", "string(uint) -> string", as_string),
        function("timestamp_to_timestamp", "timestamp(timestamp) -> timestamp", _identity),
        function(
            "int64_to_timestamp", "timestamp(int) -> timestamp", lambda value: timestamp(value * 1_000_000_000, 0)
        ),
        function("string_to_timestamp", "timestamp(string) -> timestamp", _timestamp_from_string),
        function("type", "type(A) -> type(A)", type_of),
        function("uint64_to_uint64", "uint(uint) -> uint", _identity),
        function("double_to_uint64", "uint(double) -> uint", _uint_from_double),
        function("int64_to_uint64", "uint(int) -> uint", _uint_from_int),
        function("string_to_uint64", "uint(string) -> uint", _uint_from_string),
    ),
)
