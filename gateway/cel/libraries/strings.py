"""Strings: cel-go's standard library and its extension, version 2. Positions count code points."""

from typing import Any, Final

from gateway.cel.libraries.operators import too_large
from gateway.cel.libraries.overloads import Library, function, member
from gateway.cel.values.display import display
from gateway.cel.values.faults import Fault, no_such_overload

_ASCII_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_ASCII_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""Unicode's White Space, as Go's strings.TrimSpace has it. (Python's strip takes the separators 1C to 1F as well.)"""

_QUOTED: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def _both_strings(text: Any, other: Any) -> None:
    """These three look at their arguments themselves (DisableTypeGuards)."""
    if type(text) is not str or type(other) is not str:
        raise no_such_overload()


def _contains(text: Any, part: Any) -> bool:
    _both_strings(text, part)
    return part in text


def _starts_with(text: Any, prefix: Any) -> bool:
    _both_strings(text, prefix)
    return bool(text.startswith(prefix))


def _ends_with(text: Any, suffix: Any) -> bool:
    _both_strings(text, suffix)
    return bool(text.endswith(suffix))


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise Fault(f"index out of range: {index}")
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if part == "":
        return offset
    if offset < 0:
        raise Fault(f"index out of range: {offset}")
    return text.find(part, offset)


def _last_index_of(text: str, part: str) -> int:
    return text.rfind(part)


def _last_index_before(text: str, part: str, offset: int) -> int:
    """``offset`` is the last place at which the part may begin."""
    if part == "":
        return offset
    if offset < 0:
        raise Fault(f"index out of range: {offset}")
    return -1 if offset >= len(text) else text.rfind(part, 0, offset + len(part))


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    found = text.count(old) if count < 0 else min(count, text.count(old))
    too_large(len(text) + found * (len(new) - len(old)))
    return text.replace(old, new, count)


def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if separator:
        return text.split(separator, count - 1 if count > 0 else -1)
    if count < 0 or count >= len(text):
        return list(text)
    return [*text[: count - 1], text[count - 1 :]]


def _substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise Fault(f"index out of range: {start}")
    return text[start:]


def _substring_between(text: str, start: int, end: int) -> str:
    if start > end:
        raise Fault(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise Fault(f"index out of range: {index}")
    return text[start:end]


def _join(parts: list[Any], separator: str = "") -> str:
    for part in parts:
        if type(part) is not str:
            raise Fault(f"join: invalid input: {display(part)}")
    too_large(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


STRINGS: Final = Library(
    overloads=(
        member("contains_string", "string.contains(string) -> bool", _contains),
        member("ends_with_string", "string.endsWith(string) -> bool", _ends_with),
        member("starts_with_string", "string.startsWith(string) -> bool", _starts_with),
        member("string_char_at_int", "string.charAt(int) -> string", _char_at),
        member("string_index_of_string", "string.indexOf(string) -> int", _index_of),
        member("string_index_of_string_int", "string.indexOf(string, int) -> int", _index_of),
        member("string_last_index_of_string", "string.lastIndexOf(string) -> int", _last_index_of),
        member("string_last_index_of_string_int", "string.lastIndexOf(string, int) -> int", _last_index_before),
        member("string_lower_ascii", "string.lowerAscii() -> string", lambda text: text.translate(_ASCII_LOWER)),
        member("string_upper_ascii", "string.upperAscii() -> string", lambda text: text.translate(_ASCII_UPPER)),
        member("string_replace_string_string", "string.replace(string, string) -> string", _replace),
        member("string_replace_string_string_int", "string.replace(string, string, int) -> string", _replace),
        member("string_split_string", "string.split(string) -> list(string)", _split),
        member("string_split_string_int", "string.split(string, int) -> list(string)", _split),
        member("string_substring_int", "string.substring(int) -> string", _substring),
        member("string_substring_int_int", "string.substring(int, int) -> string", _substring_between),
        member("string_trim", "string.trim() -> string", lambda text: text.strip(_SPACE)),
        member("list_join", "list(string).join() -> string", _join),
        member("list_join_string", "list(string).join(string) -> string", _join),
    ),
    unguarded=frozenset({"contains", "endsWith", "startsWith"}),
)

QUOTING: Final = Library(
    overloads=(
        function("strings_quote", "strings.quote(string) -> string", lambda text: f'"{text.translate(_QUOTED)}"'),
    ),
)
