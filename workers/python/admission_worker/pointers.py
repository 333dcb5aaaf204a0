"""JSON Pointers (RFC 6901): how a policy says which places it reads and writes, and how errors say where.

"The token "~" is encoded as "~0" and "/" as "~1"": RFC 6901, section 3. In claims a token ``*`` stands for every
element or member, so a member that is really called ``*`` cannot be claimed alone.
"""

import re
from collections.abc import Iterable

_VALID = re.compile(r"(?:/(?:[^~/]|~[01])*)+")

UID = "/uid"
"""No verdict may depend on the AdmissionRequest's uid: it is not part of a document, and claiming it is refused."""


def pointer(*tokens: str | int) -> str:
    """The JSON Pointer of a place: ``pointer("metadata", "labels", "a/b")`` is ``/metadata/labels/a~1b``."""
    return "".join(f"/{str(token).replace('~', '~0').replace('/', '~1')}" for token in tokens)


def tokens(text: str) -> tuple[str, ...]:
    """The tokens of a valid pointer, without escapes: ``/a~1b/0`` is ``("a/b", "0")``."""
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in text.split("/")[1:])


def checked(claims: Iterable[object], what: str) -> tuple[str, ...]:
    """The claimed pointers as they are sent.

    Args:
        claims: JSON Pointers.
        what: who claims them, for the error.

    Raises:
        TypeError: one text in place of a list.
        ValueError: one of them is no pointer, is empty (which is spelt ``EVERYTHING``), or is ``/uid``.
    """
    if isinstance(claims, str):
        message = f"{what}: must be a list of JSON Pointers, is the text {claims!r}; write [{claims!r}]"
        raise TypeError(message)
    return tuple(_checked_one(claim, what) for claim in claims)


def _checked_one(claim: object, what: str) -> str:
    if not isinstance(claim, str) or not _VALID.fullmatch(claim):
        hint = "; everything is spelt EVERYTHING" if claim == "" else ""
        message = f"{what}: {claim!r} is no JSON Pointer such as '/object/metadata/labels'{hint}"
        raise ValueError(message)
    if claim == UID:
        message = f"{what}: no verdict may depend on '/uid', which is not part of a document"
        raise ValueError(message)
    return claim
