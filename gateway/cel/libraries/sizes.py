"""``size``: code points, bytes, elements, entries."""

from typing import Any, Final

from gateway.cel.libraries.operators import no_operator
from gateway.cel.libraries.overloads import Library, function, member
from gateway.cel.values.containers import is_map


def _size(value: Any) -> int:
    if isinstance(value, str | bytes | list) or is_map(value):
        return len(value)
    raise no_operator(value, "size")


SIZES: Final = Library(
    overloads=(
        function("size_bytes", "size(bytes) -> int"),
        member("bytes_size", "bytes.size() -> int"),
        function("size_list", "size(list(A)) -> int"),
        member("list_size", "list(A).size() -> int"),
        function("size_map", "size(map(A, B)) -> int"),
        member("map_size", "map(A, B).size() -> int"),
        function("size_string", "size(string) -> int"),
        member("string_size", "string.size() -> int"),
    ),
    singletons={"size": _size},
)
