"""Texts between quotation marks, as Go's ``%q`` prints them (strconv.Quote)."""

from typing import Final

_SHORT: Final = {char: "\\" + name for char, name in zip('\a\b\f\n\r\t\v"\\', 'abfnrtv"\\', strict=True)}
_SURROGATE: Final = 0xDC00
"""Python's ``surrogateescape``: a byte that is no UTF-8 stands as this plus its value."""


def go_quoted(text: str) -> str:
    """The text as Go's %q (strconv.Quote) writes it: in quotation marks, on one line, what is not printable escaped."""
    if text.isascii() and text.isprintable() and "\\" not in text and '"' not in text:
        return f'"{text}"'
    return '"' + "".join(map(go_escaped, text)) + '"'


def go_escaped(char: str) -> str:
    """One character as it stands between Go's quotation marks."""
    if char in _SHORT:
        return _SHORT[char]
    if char.isprintable():
        return char
    code = ord(char)
    if _SURROGATE < code <= _SURROGATE + 0xFF:
        code -= _SURROGATE
    if code < 0x80 or ord(char) != code:  # noqa: PLR2004 - where ASCII ends
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - the basic plane
