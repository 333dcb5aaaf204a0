"""What a worker is sent, and what stands for it."""

import hashlib
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """JSON text in the AdmissionRequest's own shape, as it is sent.

    ``digest``: SHA-256 of the bytes. (xxh3 is ten times as fast, but not resistant to collisions made on purpose.)
    """

    content: bytes
    digest: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # At once: there is no document whose digest nobody wants.
        object.__setattr__(self, "digest", hashlib.sha256(self.content).digest())

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.content)
