"""RE2's regular expressions: for every pattern the time of a match is linear in the text.

Python's ``re`` backtracks: ``(a+)+`` with thirty letters blocks a worker for minutes. RE2 rejects patterns that need
backtracking (back-references, look-around), and is the same in all languages of the samples.
"""

from functools import lru_cache
from typing import Any

try:
    import re2  # type: ignore[import-untyped]
except ImportError:
    message = "the samples need google-re2: pip install 'admission-worker[samples]'"
    raise ImportError(message) from None

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False  # otherwise RE2 writes each invalid pattern to standard error


def is_pattern(text: str) -> bool:
    """Whether a text is a regular expression."""
    try:
        _compiled(text)
    except re2.error:
        return False
    return True


def matches(pattern: str, value: str) -> bool:
    """Whether the whole value matches."""
    return _compiled(pattern).fullmatch(value) is not None


@lru_cache(maxsize=128)
def _compiled(pattern: str) -> Any:
    """A cache of the last patterns: a look-up in google-re2's own takes longer than a match."""
    return re2.compile(pattern, _OPTIONS)
