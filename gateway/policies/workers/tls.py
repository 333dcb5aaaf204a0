"""``spec.grpc.tls`` of a Worker: the authorities that the gateway trusts, and its client certificate.

The rules:

* ``tls: {}`` is TLS, with the system's authorities. What is absent is plain text; so null, which would be the same, is
  refused: ``tls:`` with nothing behind it is meant as the opposite.
* A worker proves one name, as a DNS name in its certificate: ``serverName``; else the host of a target that is a DNS
  name; else (addresses, sockets) the Worker's own name. So a Worker's name is bound to its certificate, and the
  certificate of another worker of the same authority does not do.
* Files are named here and read when a connection is made: one that is not there yet, or is being renewed, is no
  error in the configuration. What stands in the configuration itself, ``caBundle``, is looked into at once.
"""

from typing import Final

from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.names import dns_subdomain
from gateway.policies.workers.ca_bundle import read_ca_bundle
from gateway.policies.workers.grpc_names import is_address, target_hosts
from gateway.policies.workers.targets import GrpcTls

FIELDS: Final = ("caFile", "caBundle", "certFile", "keyFile", "serverName")
TWO_BUNDLES: Final = "must not be set together with caFile; remove one of them"
NO_KEY: Final = "the private key that belongs to certFile"
NO_CERTIFICATE: Final = "the certificate that belongs to keyFile"


def read_tls(field: Field, target: str, worker: str) -> GrpcTls | None:
    """How a connection is secured; None: it is not, or there is an error, which has been reported.

    Args:
        field: ``spec.grpc.tls``.
        target: a valid one, or nothing.
        worker: the Worker's name.
    """
    if field.node is not None and field.node.value is None:
        field.refuse(
            field_errors.invalid(
                None, "must be of type object: {} is TLS with the system's authorities; without TLS, remove it"
            )
        )
        return None
    if not field.mapping(FIELDS):
        return None
    before = len(field.findings)
    ca_file, ca_bundle = _file(field.get("caFile")), read_ca_bundle(field.get("caBundle"))
    if not field.get("caFile").absent and not field.get("caBundle").absent:
        field.get("caBundle").refuse(field_errors.forbidden(TWO_BUNDLES))
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
        field.refuse(field_errors.required("must name a PEM file, or be left out"))
    elif path is not None and "\0" in path:
        field.refuse(field_errors.invalid(path, "must not contain a zero byte: no file has such a name"))
    else:
        return path or ""
    return ""


def _require_pair(field: Field) -> None:
    """A certificate is worth nothing without its key, and the other way round."""
    cert, key = field.get("certFile"), field.get("keyFile")
    if key.absent and not cert.absent:
        key.refuse(field_errors.required(NO_KEY))
    elif cert.absent and not key.absent:
        cert.refuse(field_errors.required(NO_CERTIFICATE))


def _server_name(field: Field) -> str:
    if field.absent:
        return ""
    name = field.name(dns_subdomain, "must be a DNS name of the worker's certificate, or be left out")
    if name is not None and is_address(name):
        field.refuse(
            field_errors.invalid(
                name, "must be a DNS name: an address is the worker's of today, and another's tomorrow"
            )
        )
    return name or ""


def _default_name(target: str, worker: str) -> str:
    """The name that DNS resolves, without the dot that may end it; else the Worker's."""
    hosts = target_hosts(target) or ()
    if len(hosts) != 1 or is_address(hosts[0]):
        return worker
    return hosts[0].removesuffix(".").lower()
