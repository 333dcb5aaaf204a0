"""Regular expressions, RE2's: whatever the pattern and the text, a match takes time in proportion to the text.

Python's own ``re`` backtracks: ``(a+)+`` against thirty letters holds a worker up for minutes. RE2 refuses what would
need that (back-references, look-around), and is the same in every language that the samples are written in.
"""

from functools import lru_cache
from typing import Any

try:
    import re2  # type: ignore[import-untyped]
except ImportError:
    message = "the samples need google-re2: pip install 'admission-worker[samples]'"
    raise ImportError(message) from None

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False  # RE2 would write each mistake to standard error


def is_pattern(text: str) -> bool:
    """Whether it is a regular expression."""
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
    """Patterns used last: google-re2 keeps them too, but takes longer to find one than to match it."""
    return re2.compile(pattern, _OPTIONS)
