"""``caBundle``: PEM certificates of authorities, in base64.

In the gateway's own kinds it is looked into at once, as far as that needs no cryptography: a bundle that is present and
holds no certificate would be an error at each call, or, worse, count as none, which means the system's authorities. In
a native configuration Kubernetes takes whatever is base64; there it is a warning (``advice``).
"""

import base64
import binascii
import re
from typing import Final

from gateway.gotypes.base64_text import base64_error
from gateway.policies import field_errors
from gateway.policies.decoding.field import Field

_BEGIN: Final = b"-----BEGIN CERTIFICATE-----"
_BLOCK = re.compile(re.escape(_BEGIN) + rb"\s(?P<base64>[A-Za-z0-9+/=\s]*)-----END CERTIFICATE-----")

_SHOWN: Final = 32
"""Characters of a bundle in a message: enough to recognize it (``LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0t`` is its usual
beginning), and one of a thousand lines is no message."""


def read_ca_bundle(field: Field) -> bytes:
    """The bundle's bytes; empty if there is none, or none that is base64. Errors are reported."""
    if field.absent:
        return b""
    text = field.text()
    if text is None:
        return b""
    if not text:
        field.refuse(
            field_errors.required("must hold the PEM certificates of the authorities in base64, or be left out")
        )
        return b""
    at = base64_error(text)
    if at is not None:
        field.refuse(field_errors.invalid(_cut(text), f"illegal base64 data at input byte {at}"))
        return b""
    bundle = base64.b64decode(text)
    error = _bundle_error(bundle)
    if error:
        field.refuse(field_errors.invalid(_cut(text), f"unable to load root certificates: {error}"))
    return bundle


def holds_certificate(bundle: bytes) -> bool:
    """Whether there is one at least: Go's AppendCertsFromPEM, and so Kubernetes, requires no more."""
    return any(not _certificate_error(block["base64"]) for block in _BLOCK.finditer(bundle))


def _bundle_error(bundle: bytes) -> str:
    """What keeps a text from being PEM certificates, or nothing."""
    blocks = list(_BLOCK.finditer(bundle))
    if not blocks:
        return "unable to parse bytes as PEM block"
    if len(blocks) < bundle.count(_BEGIN):
        return "a PEM block does not end, or holds what is no base64"
    for number, block in enumerate(blocks, 1):
        error = _certificate_error(block["base64"])
        if error:
            return f"certificate {number} {error}"
    return ""


def _certificate_error(text: bytes) -> str:
    """What keeps a block's content from being a certificate, or nothing."""
    try:
        content = binascii.a2b_base64(b"".join(text.split()), strict_mode=True)
    except binascii.Error:
        return "is no base64"
    return "" if _is_certificate(content) else "is no X.509 certificate"


def _is_certificate(content: bytes) -> bool:
    """Whether it has a certificate's outermost form in DER (RFC 5280): a sequence of sequence, sequence, bit string."""
    whole = _value(content)
    if whole is None or content[0] != _SEQUENCE or whole[1]:
        return False
    rest, tags = whole[0], []
    while rest:
        tags.append(rest[0])
        part = _value(rest)
        if part is None:
            return False
        rest = part[1]
    return tags == [_SEQUENCE, _SEQUENCE, _BIT_STRING]


_SEQUENCE: Final = 0x30
_BIT_STRING: Final = 0x03
_LONG: Final = 0x80


def _value(content: bytes) -> tuple[bytes, bytes] | None:
    """The value that a DER text begins with, without tag and length, and what follows it."""
    if len(content) < 2:  # noqa: PLR2004 - a tag and a length
        return None
    length, start = content[1], 2
    if length & _LONG:
        start += length & ~_LONG
        length = int.from_bytes(content[2:start], "big")
    end = start + length
    return (content[start:end], content[end:]) if end <= len(content) else None


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
