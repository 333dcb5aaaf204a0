"""The document of a policy without ``inputs``: every top-level member of the AdmissionRequest but ``uid``.

* Members stand in the request's own order, unknown ones included; a member that the request does not have does not
  appear.
* ``uid`` is never in it: kube-apiserver makes a new one for every call, retries included, and no verdict may depend
  on it.
* The API server's own bytes pass through for each member that nobody has changed. Only ``object`` can be changed, by
  the policies earlier in the chain; then it is encoded anew, in its own member order.
* So equal values in equal order give equal bytes, and equal bytes are the same question.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgspec

from gateway.review import Request

_encode_value: Final = msgspec.json.Encoder().encode
_NEVER_SENT: Final = "uid"
_CHANGING: Final = "object"


@dataclass(frozen=True, kw_only=True)
class Document:
    """JSON text in the AdmissionRequest's own shape, as it is sent."""

    content: bytes

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.content)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the bytes. (xxh3 is ten times as fast, but not resistant to collisions made on purpose.)"""
        return hashlib.sha256(self.content).digest()


class Documents:
    """The documents of one review, for the object as it is now.

    ``of(object)`` is cheap while the object stays the same value (identity): all policies without inputs share one
    document.
    """

    __slots__ = ("_current", "_document", "_request")

    def __init__(self, request: Request) -> None:
        self._request = request
        self._current: Any = None
        self._document: Document | None = None

    def of(self, current: Any, *, changed: bool) -> Document:
        """The document about ``current``, the object after the changes so far.

        Args:
            current: the object's value, or None where there is none.
            changed: whether it is another one than the request's own; if not, the request's bytes are used.
        """
        if self._document is None or current is not self._current:
            self._current = current
            self._document = Document(content=self._encode(current, changed=changed))
        return self._document

    def _encode(self, current: Any, *, changed: bool) -> bytes:
        parts = [
            b"%s:%s" % (_encode_value(name), _encode_value(current) if changed and name == _CHANGING else raw)
            for name, raw in self._request.members.items()
            if name != _NEVER_SENT
        ]
        return b"{" + b",".join(parts) + b"}"
