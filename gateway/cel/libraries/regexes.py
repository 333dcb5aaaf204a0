"""Regular expressions: ``matches``, ``find``, ``findAll``, in RE2's syntax and in linear time.

Python's ``re`` can take exponential time, and a condition is not trusted that far; so RE2 does the work. (Go's regexp
has the same syntax and picks the same matches.)
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

from gateway.cel.libraries.overloads import Library, function, member
from gateway.cel.values.equality import Effort
from gateway.cel.values.faults import Fault, no_such_overload

_KEPT: Final = 32
"""Regular expressions kept compiled. A pattern may come from the object, and RE2 lets each have 8 MB of states: 256 MB
at the very worst. Compiling one takes some 20 microseconds."""

_WORDS: Final = (
    ("missing ]: ", "missing closing ]: `{}`"),
    ("missing ): ", "missing closing ): `{}`"),
    ("unexpected ): ", "unexpected ): `{}`"),
    ("no argument for repetition operator: ", "missing argument to repetition operator: `{}`"),
    ("bad repetition operator: ", "invalid nested repetition operator: `{}`"),
    ("invalid repetition size: ", "invalid repeat count: `{}`"),
    ("invalid character class range: ", "invalid character class range: `{}`"),
    ("invalid character class: ", "invalid character class: `{}`"),
    ("invalid escape sequence: ", "invalid escape sequence: `{}`"),
    ("invalid perl operator: ", "invalid or unsupported Perl syntax: `{}`"),
    ("invalid named capture group: ", "invalid named capture: `{}`"),
    ("trailing \\", "trailing backslash at end of expression: ``"),
    ("bad UTF-8", "invalid UTF-8: `{}`"),
)
"""RE2's messages, and Go's."""

_ONE_BYTE: Final = re.compile(r"(?:\\[^C]|[^\\])*\\C", re.DOTALL)
"""``\\C``, one byte of a character: RE2 has it, Go does not."""


@lru_cache(maxsize=_KEPT)
def _compiled(pattern: str) -> Any:
    """The regular expression; raises a Fault in Go's words where it is none."""
    # Most conditions have no regular expression, and RE2 takes long to load. It comes without types.
    import re2  # type: ignore[import-untyped]  # noqa: PLC0415

    if _ONE_BYTE.match(pattern):
        raise Fault("error parsing regexp: invalid escape sequence: `\\C`")
    options = re2.Options()
    options.log_errors = False  # else RE2 writes each error to standard error
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise Fault(_translated(_text(error.args[0]))) from error
    finally:
        re2.purge()  # it keeps four times as many itself


def _text(message: str | bytes) -> str:
    return message if isinstance(message, str) else message.decode(errors="replace")


def _translated(message: str) -> str:
    for beginning, words in _WORDS:
        if message.startswith(beginning):
            return f"error parsing regexp: {words.format(message[len(beginning) :])}"
    return f"error parsing regexp: {message}"


def pattern_error(pattern: str) -> str | None:
    """What is wrong with a regular expression, in Go's words, or None."""
    try:
        _compiled(pattern)
    except Fault as fault:
        return fault.message
    return None


def _matches(text: Any, pattern: Any) -> bool:
    if type(text) is not str:
        raise Fault("no such overload: matches")
    if type(pattern) is not str:
        raise no_such_overload()
    # As bytes: for text, RE2 would count where it matches, which is not needed.
    return _compiled(pattern).search(text.encode()) is not None


_MATCH: Final = 10
"""Steps of a match: some 3 to 5 µs."""


def _found(text: str, pattern: str, count: int, effort: Effort) -> Iterator[str]:
    """The matches from left to right, none overlapping; at most ``count``, if that is not negative."""
    try:
        compiled = _compiled(pattern)
    except Fault as fault:
        raise Fault(f"Illegal regex: {fault.message}") from None
    # As bytes: in a text, RE2 would count the characters before each match, which is quadratic.
    content = text.encode()
    end = -1
    for match in compiled.finditer(content) if count else ():
        effort(_MATCH)
        start = match.start()
        # Go's regexp: "If 'All' is present ... empty matches abutting a preceding match are ignored." And none is
        # within a character.
        skipped = start == match.end() and (start == end or content[start : start + 1] in _CONTINUATIONS)
        end = match.end()
        if skipped:
            continue
        yield match.group().decode()
        count -= 1
        if not count:
            return


_CONTINUATIONS: Final = frozenset(bytes([byte]) for byte in range(0x80, 0xC0))
"""The bytes of a character in UTF-8, but for its first."""


def _find(text: str, pattern: str, effort: Effort) -> str:
    return next(_found(text, pattern, -1, effort), "")


def _find_all(text: str, pattern: str, effort: Effort) -> list[str]:
    return list(_found(text, pattern, -1, effort))


def _find_some(text: str, pattern: str, count: int, effort: Effort) -> list[str]:
    return list(_found(text, pattern, count, effort))


REGEXES: Final = Library(
    overloads=(
        function("matches", "matches(string, string) -> bool"),
        member("matches_string", "string.matches(string) -> bool"),
        member("string_find_string", "string.find(string) -> string", _find, effortful=True),
        member("string_find_all_string", "string.findAll(string) -> list(string)", _find_all, effortful=True),
        member("string_find_all_string_int", "string.findAll(string, int) -> list(string)", _find_some, effortful=True),
    ),
    singletons={"matches": _matches},
)

PATTERN_ARGUMENT: Final[dict[str, int]] = dict.fromkeys(("matches", "find", "findAll"), 1)
"""Functions whose pattern is checked when compiling if it is a constant, and which argument (target included) it
is."""

Matcher = Callable[[str], Any]
