"""``spec.grpc.tls`` of a Worker: whom the gateway trusts at the target, and how it proves who it is itself.

The rules:

* ``tls: {}`` is TLS, with the system's authorities. What is absent is plain text; so null, which would be the same, is
  refused: whoever writes ``tls:`` and nothing behind it means the opposite.
* A worker proves one name, as a DNS name in its certificate: ``serverName``; else the host of a target that is a DNS
  name; else (addresses, sockets) the Worker's own name. So a Worker's name is bound to its certificate, and the
  certificate of another worker of the same authority does not do.
* Files are named here and read when a connection is made: one that is not there yet, or is being renewed, is no
  mistake in the configuration. What stands in the configuration itself, ``caBundle``, is looked into at once, as far as
  that needs no cryptography.
"""

import base64
import binascii
import re
from typing import Final

from gateway.policies import wording
from gateway.policies.base64_text import base64_mistake
from gateway.policies.fields import Field
from gateway.policies.model import GrpcTls
from gateway.policies.names import dns_subdomain
from gateway.policies.targets import is_address, target_hosts

_TLS: Final = ("caFile", "caBundle", "certFile", "keyFile", "serverName")

_BEGIN: Final = b"-----BEGIN CERTIFICATE-----"
_BLOCK = re.compile(re.escape(_BEGIN) + rb"\s(?P<base64>[A-Za-z0-9+/=\s]*)-----END CERTIFICATE-----")

_SHOWN: Final = 32
"""Characters of a bundle in a message: enough to recognize it (``LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0t`` is its usual
beginning), and one of a thousand lines is no message."""


def read_tls(field: Field, target: str, worker: str) -> GrpcTls | None:
    """How a connection is secured; None: it is not, or there is a mistake, which has been reported.

    Args:
        field: ``spec.grpc.tls``.
        target: a valid one, or nothing.
        worker: the Worker's name.
    """
    if field.node is not None and field.node.value is None:
        field.refuse(
            wording.invalid(
                None, "must be of type object: {} is TLS with the system's authorities; without TLS, remove it"
            )
        )
        return None
    if not field.mapping(_TLS):
        return None
    before = len(field.findings)
    ca_file, ca_bundle = _file(field.get("caFile")), _bundle(field.get("caBundle"))
    if not field.get("caFile").absent and not field.get("caBundle").absent:
        field.get("caBundle").refuse(wording.forbidden("must not be set together with caFile; remove one of them"))
    cert_file, key_file = _file(field.get("certFile")), _file(field.get("keyFile"))
    _require_pair(field)
    server_name = _server_name(field.get("serverName"))
    if len(field.findings) > before:
        return None
    return GrpcTls(
        ca_file=ca_file,
        ca_bundle=ca_bundle,
        cert_file=cert_file,
        key_file=key_file,
        server_name=server_name or _default_name(target, worker),
    )


def _file(field: Field) -> str:
    if field.absent:
        return ""
    path = field.text()
    if path == "":
        field.refuse(wording.required("must name a PEM file, or be left out"))
    elif path is not None and "\0" in path:
        field.refuse(wording.invalid(path, "must not contain a zero byte: no file has such a name"))
    else:
        return path or ""
    return ""


def _require_pair(field: Field) -> None:
    """A certificate is worth nothing without its key, and the other way round."""
    cert, key = field.get("certFile"), field.get("keyFile")
    if key.absent and not cert.absent:
        key.refuse(wording.required("the private key that belongs to certFile"))
    elif cert.absent and not key.absent:
        cert.refuse(wording.required("the certificate that belongs to keyFile"))


def _server_name(field: Field) -> str:
    if field.absent:
        return ""
    name = field.name(dns_subdomain, "must be a DNS name of the worker's certificate, or be left out")
    if name is not None and is_address(name):
        field.refuse(
            wording.invalid(name, "must be a DNS name: an address is the worker's of today, and another's tomorrow")
        )
    return name or ""


def _default_name(target: str, worker: str) -> str:
    """The name that is asked for in DNS, without the dot that may end it; else the Worker's."""
    hosts = target_hosts(target) or ()
    if len(hosts) != 1 or is_address(hosts[0]):
        return worker
    return hosts[0].removesuffix(".").lower()


# -------------------------------------------------------------------------------------------- caBundle


def _bundle(field: Field) -> bytes:
    if field.absent:
        return b""
    text = field.text()
    if text is None:
        return b""
    if not text:
        field.refuse(wording.required("must hold the PEM certificates of the authorities in base64, or be left out"))
        return b""
    at = base64_mistake(text)
    if at is not None:
        field.refuse(wording.invalid(_cut(text), f"illegal base64 data at input byte {at}"))
        return b""
    bundle = base64.b64decode(text)
    mistake = _bundle_mistake(bundle)
    if mistake:
        field.refuse(wording.invalid(_cut(text), f"unable to load root certificates: {mistake}"))
    return bundle


def _bundle_mistake(bundle: bytes) -> str:
    """What keeps a text from being PEM certificates, or nothing."""
    blocks = list(_BLOCK.finditer(bundle))
    if not blocks:
        return "unable to parse bytes as PEM block"
    if len(blocks) < bundle.count(_BEGIN):
        return "a PEM block does not end, or holds what is no base64"
    for number, block in enumerate(blocks, 1):
        try:
            content = binascii.a2b_base64(b"".join(block["base64"].split()), strict_mode=True)
        except binascii.Error:
            return f"certificate {number} is no base64"
        if not _is_certificate(content):
            return f"certificate {number} is no X.509 certificate"
    return ""


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
