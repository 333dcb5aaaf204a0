"""How Go writes a string between quotes (strconv.Quote): in error messages, and in what ``format`` makes of lists."""

from typing import Final

_SHORT: Final = {
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
_DELETE: Final = 0x7F
_FOUR_DIGITS: Final = 0xFFFF


def quoted(text: str) -> str:
    """A Go string literal of the text."""
    if text.isascii() and text.isprintable() and "\\" not in text and '"' not in text:
        return f'"{text}"'
    return f'"{"".join(map(_character, text))}"'


def _character(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < ord(" ") or code == _DELETE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _FOUR_DIGITS else f"\\U{code:08x}"
