"""Regular expressions: ``matches``, ``find``, ``findAll``, in RE2's syntax and in linear time.

Python's ``re`` can take exponential time, and a condition is not trusted that far; so RE2 does the work, the one inside
cel-expr-python (Go's regexp has the same syntax and picks the same matches). The package gives only three of its
functions; ``findAll`` is its ``regex.replace``, with marks put around every match.

Where the package is not there, ``MISSING_ENGINE`` says so and a condition with regular expressions does not compile.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from gateway.conditions.engine import cel
from gateway.conditions.libraries.overloads import Library, function, member
from gateway.conditions.values.faults import Fault, no_such_overload

MISSING_ENGINE: Final = (
    ""
    if cel
    else "regular expressions in conditions need the package cel-expr-python, which is not installed"
    " (there are wheels for Linux with glibc, on x86_64 and aarch64)"
)

_CONFIGURATION: Final = """
extensions: [{name: optional}, {name: regex}]
variables: [{name: text, type: string}, {name: pattern, type: string}, {name: marks, type: string}]
"""

_PREFIX: Final = "invalid regular expression: "

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
"""RE2's words for a mistake, and Go's."""

_ONE_BYTE: Final = re.compile(r"(?:\\[^C]|[^\\])*\\C", re.DOTALL)
"""``\\C``, one byte of a character: RE2 has it, Go does not."""


@lru_cache(maxsize=1)
def _engine() -> tuple[Any, Any]:
    environment = cel.NewEnv(config=cel.NewEnvConfigFromYaml(_CONFIGURATION))
    return environment.compile("text.matches(pattern)"), environment.compile("regex.replace(text, pattern, marks)")


def _run(which: int, data: dict[str, str]) -> Any:
    try:
        result = _engine()[which].eval(data=data)
    except RuntimeError as error:
        raise Fault(f"error parsing regexp: {error}") from error
    if result.type() == cel.Type.ERROR:
        raise Fault(_translated(str(result.value())))
    return result.value()


def _translated(message: str) -> str:
    _, found, said = message.partition(_PREFIX)
    said = said if found else message
    for beginning, words in _WORDS:
        if said.startswith(beginning):
            return f"error parsing regexp: {words.format(said[len(beginning) :].removesuffix(' [INVALID_ARGUMENT]'))}"
    return f"error parsing regexp: {said}"


@lru_cache(maxsize=1024)
def mistake(pattern: str) -> str | None:
    """What is wrong with a regular expression, in Go's words, or None."""
    if not cel:
        return MISSING_ENGINE
    if _ONE_BYTE.match(pattern):
        return "error parsing regexp: invalid escape sequence: `\\C`"
    try:
        _run(0, {"text": "", "pattern": pattern})
    except Fault as fault:
        return fault.message
    return None


def _checked(pattern: str, prefix: str = "") -> None:
    wrong = mistake(pattern)
    if wrong is not None:
        raise Fault(prefix + wrong)


def _matches(text: Any, pattern: Any) -> bool:
    if type(text) is not str:
        raise Fault("no such overload: matches")
    if type(pattern) is not str:
        raise no_such_overload()
    _checked(pattern)
    return bool(_run(0, {"text": text, "pattern": pattern}))


def _find_all(text: str, pattern: str, count: int = -1) -> list[str]:
    """The matches from left to right, none overlapping; no empty one that touches the one before."""
    _checked(pattern, "Illegal regex: ")
    opening, closing = _marks(text)
    marked = _run(1, {"text": text, "pattern": pattern, "marks": f"{opening}\\0{closing}"})
    found = [piece.partition(closing)[0] for piece in marked.split(opening)[1:]]
    return found if count < 0 else found[:count]


def _marks(text: str) -> tuple[str, str]:
    """Two characters that the text does not have."""
    free = (character for character in map(chr, range(0xE000, 0xF8FF)) if character not in text)
    return next(free), next(free)


def _find(text: str, pattern: str) -> str:
    return next(iter(_find_all(text, pattern)), "")


REGEXES: Final = Library(
    overloads=(
        function("matches", "matches(string, string) -> bool"),
        member("matches_string", "string.matches(string) -> bool"),
        member("string_find_string", "string.find(string) -> string", _find),
        member("string_find_all_string", "string.findAll(string) -> list(string)", _find_all),
        member("string_find_all_string_int", "string.findAll(string, int) -> list(string)", _find_all),
    ),
    singletons={"matches": _matches},
)

PATTERN_ARGUMENT: Final[dict[str, int]] = dict.fromkeys(("matches", "find", "findAll"), 1)
"""Functions whose pattern is looked at when compiling if it is a constant, and which argument (target included) it
is."""

Matcher = Callable[[str], Any]
