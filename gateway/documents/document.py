"""What a worker is sent, and what stands for it."""

import hashlib
from dataclasses import dataclass
from functools import cached_property


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
