"""JSON Pointers (RFC 6901), and those of claims, in which a token ``*`` matches every element or member."""

import re

_VALID = re.compile(r"(?:/(?:[^~/]|~[01])*)*")

Place = tuple[str, ...]


def is_pointer(text: str) -> bool:
    """Whether a text is a JSON Pointer; "" is one, for the whole document."""
    return _VALID.fullmatch(text) is not None


def tokens(text: str) -> Place:
    """The tokens of a valid pointer: "~1" is "/" and "~0" is "~"."""
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in text.split("/")[1:])


def pointer(place: Place) -> str:
    """The pointer of a place."""
    return "".join(f"/{token.replace('~', '~0').replace('/', '~1')}" for token in place)


def covers(claim: Place, place: Place) -> bool:
    """Whether a claim covers a place: it is that place, or a parent of it."""
    return len(claim) <= len(place) and all(wanted in {"*", token} for wanted, token in zip(claim, place, strict=False))
