"""Key files: one key a line, 32 random bytes in base64. Empty lines and lines that start with ``#`` are ignored.

The first key seals; all keys open, so that a key can be replaced while other processes still have the old one:

    1. add the new key as the last line, everywhere     all processes can open what it will seal
    2. move it to the first line, everywhere            it seals; the old one only opens
    3. remove the old one, once nothing is left that it sealed

Messages contain nothing of a file's content: it may be most of a key.
"""

import base64
import binascii
from pathlib import Path
from typing import Final

KEYS: Final = 4
"""Maximum number of keys in a file. A rotation needs two; each further key costs one more attempt to open a value."""

KEY_BYTES: Final = 32

_FILE_BYTES: Final = 65_536
"""A longer file is not a key file: four keys are 180 bytes."""


def secrets_of(path: Path, kind: str = "seal key file") -> tuple[bytes, ...]:
    """The keys of a file, as bytes, in order; at least one.

    Args:
        path: of the file.
        kind: its name in messages.

    Raises:
        ValueError: it cannot be read, or a line is not a key. The message names file and line, never the content.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_FILE_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{kind} {path}: {error.strerror or type(error).__name__}") from None
    if len(content) > _FILE_BYTES:
        raise ValueError(f"{kind} {path}: longer than {_FILE_BYTES} bytes; expected one key a line")
    secrets: list[bytes] = []
    for number, line in enumerate(content.splitlines(), 1):
        text = line.strip()
        if text and not text.startswith(b"#"):
            secrets.append(_secret(text, f"{kind} {path}, line {number}"))
    if not secrets:
        raise ValueError(f"{kind} {path}: it contains no key; create one with `openssl rand -base64 {KEY_BYTES}`")
    if len(secrets) > KEYS:
        raise ValueError(f"{kind} {path}: {len(secrets)} keys, expected at most {KEYS}; remove the oldest")
    if len(set(secrets)) < len(secrets):
        raise ValueError(f"{kind} {path}: it contains the same key twice; remove one")
    return tuple(secrets)


def _secret(text: bytes, where: str) -> bytes:
    try:
        secret = base64.b64decode(text, validate=True)
    except binascii.Error:
        secret = b""
    if len(secret) != KEY_BYTES:
        # The message must not contain the line.
        raise ValueError(
            f"{where}: expected base64 of {KEY_BYTES} bytes (44 characters), found {len(text)} characters"
            f"{f' of {len(secret)} bytes' if secret else ''}; create one with `openssl rand -base64 {KEY_BYTES}`"
        )
    return secret
