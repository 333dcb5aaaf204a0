"""What a document about a decision must not show, whatever the inputs of its policies are: the values of a Secret, and
tokens.

Changed values are digests then. A worker that was shown such a value may repeat it in a text: ``cleaned`` replaces it,
plain or in base64. Values of one or two characters stay: they are in any text.
"""

from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from gateway.review.request import Request, ReviewError

HIDDEN: Final = "(hidden)"

SHORTEST: Final = 3
"""Characters of the shortest value that is replaced."""

VALUES: Final = 200
"""Values that are looked for in each text. A Secret with more has all of its texts replaced: that is no reason to spend
seconds on one document."""

_TOKENS: Final = "authentication.k8s.io"


class HiddenValues:
    """The values of one request. ``all``: every changed value is hidden."""

    def __init__(self, request: Request) -> None:
        self.all = request.kind.group == _TOKENS or (not request.kind.group and request.kind.kind == "Secret")
        self._values: list[str] = []
        # A reduced decision's request has no object any more.
        self._is_unknown = self.all and "object" not in request.members
        if self.all:
            found = {each for each in _values(request) if len(each) >= SHORTEST}
            self._values = sorted(found, key=len, reverse=True)

    def cleaned(self, text: str, characters: int) -> str:
        """The first ``characters`` of a text, at most, without the values."""
        if text and (self._is_unknown or len(self._values) > VALUES):
            return HIDDEN
        if not self._values:
            return text[:characters]
        longest = len(self._values[0])
        if len(text) > characters + longest:
            # The end may be the beginning of a value.
            return self._replaced(text[: characters + longest])[:-longest][:characters]
        return self._replaced(text)[:characters]

    def _replaced(self, text: str) -> str:
        for value in self._values:
            if value in text:
                text = text.replace(value, HIDDEN)
        return text


def _values(request: Request) -> Iterator[str]:
    for value in (_read(request, "object"), _read(request, "old_object")):
        if isinstance(value, dict):
            for member in ("data", "stringData", "spec", "status"):
                yield from _texts(value.get(member))


def _read(request: Request, member: str) -> Any:
    try:
        return getattr(request, member)
    except ReviewError:
        return None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        with suppress(ValueError):
            yield b64decode(value, validate=True).decode()
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
