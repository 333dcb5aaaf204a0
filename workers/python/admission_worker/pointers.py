"""JSON Pointers (RFC 6901), for claims and for the places of errors.

"The token "~" is encoded as "~0" and "/" as "~1"": RFC 6901, section 3. In claims a token ``*`` matches every
element or member, so a member with the name ``*`` cannot be claimed alone.
"""

import re
from collections.abc import Iterable

_VALID = re.compile(r"(?:/(?:[^~/]|~[01])*)+")

MOST = 256
"""Pointers in one claim, and tokens in one pointer: the gateway accepts no more, and no request is nested deeper."""


def pointer(*tokens: str | int) -> str:
    """The JSON Pointer of a place: ``pointer("metadata", "labels", "a/b")`` is ``/metadata/labels/a~1b``."""
    return "".join(f"/{str(token).replace('~', '~0').replace('/', '~1')}" for token in tokens)


def tokens(text: str) -> tuple[str, ...]:
    """The tokens of a valid pointer, without escapes: ``/a~1b/0`` is ``("a/b", "0")``."""
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in text.split("/")[1:])


def checked(claims: Iterable[object], what: str) -> tuple[str, ...]:
    """The claimed pointers, without duplicates.

    Args:
        claims: JSON Pointers.
        what: the claim's name in an error.

    Raises:
        TypeError: a string instead of a list.
        ValueError: one of them is not a pointer, or is empty (use ``EVERYTHING``), or there are too many.
    """
    if isinstance(claims, str):
        message = f"{what}: must be a list of JSON Pointers, is the text {claims!r}; write [{claims!r}]"
        raise TypeError(message)
    # Claims are often joined from lists of places; the gateway rejects duplicates.
    pointers = tuple(dict.fromkeys(_checked_one(claim, what) for claim in claims))
    if len(pointers) > MOST:
        message = f"{what}: at most {MOST} pointers, there are {len(pointers)}; claim what holds several of them"
        raise ValueError(message)
    return pointers


def _checked_one(claim: object, what: str) -> str:
    if not isinstance(claim, str) or not _VALID.fullmatch(claim):
        hint = "; everything is spelt EVERYTHING" if claim == "" else ""
        message = f"{what}: {claim!r} is no JSON Pointer such as '/object/metadata/labels'{hint}"
        raise ValueError(message)
    if claim.count("/") > MOST:
        message = f"{what}: {claim[:80]!r}... has more than {MOST} segments, and no request is nested so deep"
        raise ValueError(message)
    return claim
