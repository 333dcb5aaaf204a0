"""Base64 as Go's encoding/json takes it for ``[]byte`` (base64.StdEncoding): padded, line ends anywhere, nothing else.

The standard library's decoder does not say where a text stops being base64, which is what Kubernetes' message says.
"""

import re
from typing import Final

_ALPHABET = re.compile(rb"[A-Za-z0-9+/\r\n]*")
_LINE_ENDS = re.compile(rb"[\r\n]*")
_PAD: Final = b"="
_QUANTUM: Final = 4


def base64_error(text: str) -> int | None:
    """The offset, in bytes of UTF-8, at which Go's decoder gives up; None if the text is base64."""
    source = text.encode(errors="replace")
    at = _past(_ALPHABET, source, 0)
    characters = at - source.count(b"\r", 0, at) - source.count(b"\n", 0, at)
    filled = characters % _QUANTUM
    if at == len(source):
        return at - filled if filled else None
    if source[at : at + 1] != _PAD or filled < 2:  # noqa: PLR2004 - one character is less than a byte
        return at
    at = _past(_LINE_ENDS, source, at + 1)
    if filled == 2:  # noqa: PLR2004 - "'==' is expected, the first '=' is already consumed"
        if at == len(source):
            return at
        if source[at : at + 1] != _PAD:
            return at - 1
        at = _past(_LINE_ENDS, source, at + 1)
    return None if at == len(source) else at


def _past(pattern: re.Pattern[bytes], source: bytes, at: int) -> int:
    match = pattern.match(source, at)
    return match.end() if match else at
