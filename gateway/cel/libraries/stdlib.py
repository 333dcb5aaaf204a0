"""The standard library's operators and ``size``: their signatures (cel-go's common/stdlib).

Of ``&&``, ``||``, ``?:``, ``==``, ``!=``, ``[]`` and ``.?`` only the signatures are here: how they work is part of the
plan.
"""

from typing import Final

from gateway.cel.libraries import operators
from gateway.cel.libraries.overloads import Library, Overload, function, member

_ARITHMETIC: Final = {
    "_+_": (
        "add_bytes(bytes, bytes) -> bytes",
        "add_double(double, double) -> double",
        "add_duration_duration(duration, duration) -> duration",
        "add_duration_timestamp(duration, timestamp) -> timestamp",
        "add_timestamp_duration(timestamp, duration) -> timestamp",
        "add_int64(int, int) -> int",
        "add_list(list(A), list(A)) -> list(A)",
        "add_string(string, string) -> string",
        "add_uint64(uint, uint) -> uint",
    ),
    "_-_": (
        "subtract_double(double, double) -> double",
        "subtract_duration_duration(duration, duration) -> duration",
        "subtract_int64(int, int) -> int",
        "subtract_timestamp_duration(timestamp, duration) -> timestamp",
        "subtract_timestamp_timestamp(timestamp, timestamp) -> duration",
        "subtract_uint64(uint, uint) -> uint",
    ),
    "_*_": (
        "multiply_double(double, double) -> double",
        "multiply_int64(int, int) -> int",
        "multiply_uint64(uint, uint) -> uint",
    ),
    "_/_": (
        "divide_double(double, double) -> double",
        "divide_int64(int, int) -> int",
        "divide_uint64(uint, uint) -> uint",
    ),
    "_%_": ("modulo_int64(int, int) -> int", "modulo_uint64(uint, uint) -> uint"),
    "-_": ("negate_double(double) -> double", "negate_int64(int) -> int"),
    "!_": ("logical_not(bool) -> bool",),
    "@in": ("in_list(A, list(A)) -> bool", "in_map(A, map(A, B)) -> bool"),
    "@not_strictly_false": ("not_strictly_false(bool) -> bool",),
    "_&&_": ("logical_and(bool, bool) -> bool",),
    "_||_": ("logical_or(bool, bool) -> bool",),
    "_?_:_": ("conditional(bool, A, A) -> A",),
    "_==_": ("equals(A, A) -> bool",),
    "_!=_": ("not_equals(A, A) -> bool",),
    "_[_]": (
        "index_list(list(A), int) -> A",
        "index_map(map(A, B), A) -> B",
        "optional_list_index_int(optional_type(list(V)), int) -> optional_type(V)",
        "optional_map_index_value(optional_type(map(K, V)), K) -> optional_type(V)",
    ),
    "_[?_]": (
        "list_optindex_optional_int(list(V), int) -> optional_type(V)",
        "optional_list_optindex_optional_int(optional_type(list(V)), int) -> optional_type(V)",
        "map_optindex_optional_value(map(K, V), K) -> optional_type(V)",
        "optional_map_optindex_optional_value(optional_type(map(K, V)), K) -> optional_type(V)",
    ),
}

_ORDER: Final = {"_<_": "less", "_<=_": "less_equals", "_>_": "greater", "_>=_": "greater_equals"}
_ORDERED: Final = (
    ("bool", "bool", "bool"),
    ("int64", "int", "int"),
    ("int64_double", "int", "double"),
    ("int64_uint64", "int", "uint"),
    ("uint64", "uint", "uint"),
    ("uint64_double", "uint", "double"),
    ("uint64_int64", "uint", "int"),
    ("double", "double", "double"),
    ("double_int64", "double", "int"),
    ("double_uint64", "double", "uint"),
    ("string", "string", "string"),
    ("bytes", "bytes", "bytes"),
    ("timestamp", "timestamp", "timestamp"),
    ("duration", "duration", "duration"),
)


def _overloads() -> tuple[Overload, ...]:
    named = [
        function(signature.partition("(")[0], name + signature[signature.index("(") :])
        for name, signatures in _ARITHMETIC.items()
        for signature in signatures
    ]
    ordered = [
        function(f"{prefix}_{suffix}", f"{name}({left}, {right}) -> bool")
        for name, prefix in _ORDER.items()
        for suffix, left, right in _ORDERED
    ]
    return (*named, *ordered)


_SIZES: Final = (
    function("size_bytes", "size(bytes) -> int"),
    member("bytes_size", "bytes.size() -> int"),
    function("size_list", "size(list(A)) -> int"),
    member("list_size", "list(A).size() -> int"),
    function("size_map", "size(map(A, B)) -> int"),
    member("map_size", "map(A, B).size() -> int"),
    function("size_string", "size(string) -> int"),
    member("string_size", "string.size() -> int"),
)

STDLIB: Final = Library(
    overloads=(*_overloads(), *_SIZES),
    singletons={
        "_+_": operators.add,
        "_-_": operators.subtract,
        "_*_": operators.multiply,
        "_/_": operators.divide,
        "_%_": operators.modulo,
        "-_": operators.negate,
        "!_": operators.invert,
        "_<_": operators.less,
        "_<=_": operators.less_or_equal,
        "_>_": operators.greater,
        "_>=_": operators.greater_or_equal,
        "@in": operators.is_in,
        "size": operators.size,
    },
    effortful=frozenset({"@in", *_ORDER}),
)
