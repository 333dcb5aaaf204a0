"""The schema of a Worker's ``spec``: the fields of ``gateway.policies.workers``, by their names and limits there."""

from typing import Final

from deploy.generator.schemas import (
    Schema,
    array,
    dns_name,
    mapping,
    require_equal,
    rule,
    text,
    whole,
)
from gateway.bounds import MAX_PORT
from gateway.policies.names import SUBDOMAIN_MAX
from gateway.policies.workers import client_config, files_only, grpc_target, hook_target, queue_target, tls, worker
from gateway.policies.workers.grpc_names import EXPECTED

_MAX_TARGET: Final = 4096
"""Characters of a target: of a hundred addresses."""
_MAX_URL: Final = 2048
_TARGET: Final = (
    r"^(dns:///)?(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9_.-]{1,254}):[0-9]{1,5}$"
    r"|^ipv4:[0-9.:,]+$|^ipv6:[0-9A-Fa-f:.,\\[\\]]+$|^unix:"
)
"""Wider than a target is: the gateway looks more closely."""


def worker_spec() -> Schema:
    """``spec``."""
    made = {"grpc": _grpc(), "queue": _queue(), "webhook": _webhook(), "hook": _hook()}
    require_equal(made, worker.TRANSPORTS)
    found = ", ".join(f"has(self.{name})" for name in worker.TRANSPORTS)
    return mapping(
        f"How the worker is called: {worker.ONE_OF.removeprefix('must specify ')}.",
        made,
        rule(f"[{found}].exists(x, x)", worker.ONE_OF, "Required"),
        rule(f"[{found}].filter(x, x).size() <= 1", worker.ONE_OF),
        rule("!has(self.hook)", files_only.HOOK, "Forbidden", ".hook"),
    )


def _grpc() -> Schema:
    made = {
        "target": text(
            "HOST:PORT, dns:///HOST:PORT, ipv4:ADDRESS:PORT or ipv6:[ADDRESS]:PORT.",
            rule(f"!self.startsWith('{files_only.SOCKET}')", files_only.TARGET, "Forbidden"),
            rule(f"self.matches('{_TARGET}')", EXPECTED),
            maxLength=_MAX_TARGET,
        ),
        "command": array("From files only.", text()),
        "tls": _tls(),
        "connections": whole(
            f"Connections to this worker, 1 to {grpc_target.MAX_CONNECTIONS}.",
            rule(f"1 <= self && self <= {grpc_target.MAX_CONNECTIONS}", grpc_target.CONNECTIONS_RANGE),
        ),
    }
    require_equal(made, grpc_target.FIELDS)
    return mapping(
        "A gRPC worker.",
        made,
        rule("!has(self.command)", files_only.COMMAND, "Forbidden", ".command"),
        rule("has(self.command) || has(self.target)", EXPECTED, "Required", ".target"),
    )


def _tls() -> Schema:
    made = {
        "caFile": _file("A file of the gateway's pod: the CAs that may sign the worker's certificate."),
        "caBundle": _bundle(),
        "certFile": _file("A file of the gateway's pod: its client certificate."),
        "keyFile": _file("A file of the gateway's pod: the key of certFile."),
        "serverName": text(
            "The DNS name that the worker's certificate must contain.", dns_name(), maxLength=SUBDOMAIN_MAX
        ),
    }
    require_equal(made, tls.FIELDS)
    return mapping(
        "TLS, {} with the system's CAs. Default: plain text.",
        made,
        rule("!has(self.caFile) || !has(self.caBundle)", tls.TWO_BUNDLES, "Forbidden", ".caBundle"),
        rule("!has(self.certFile) || has(self.keyFile)", tls.NO_KEY, "Required", ".keyFile"),
        rule("!has(self.keyFile) || has(self.certFile)", tls.NO_CERTIFICATE, "Required", ".certFile"),
        # Kept, for the gateway to refuse it: otherwise the API server leaves it out, and that is plain text.
        nullable=True,
    )


def _queue() -> Schema:
    stream = rule(f"self.matches('^{queue_target.STREAM.pattern}$')", queue_target.EXPECTED)
    made = {
        "stream": text("The queue's name in Redis.", stream, maxLength=queue_target.MAX_STREAM),
        "keyFile": _file("A file of the gateway's pod: the keys that encrypt the queue."),
    }
    require_equal(made, queue_target.FIELDS)
    return mapping("A worker behind a queue in Redis Streams.", made, required=made)


def _webhook() -> Schema:
    made = {
        "url": text(
            "https://HOST[:PORT][/PATH].",
            rule("isURL(self) && url(self).getScheme() == 'https'", client_config.ONLY_HTTPS),
            maxLength=_MAX_URL,
        ),
        "service": _service(),
        "caBundle": _bundle(),
        worker.VERSIONS: array("AdmissionReview versions, preferred first. Default: [v1].", text()),
    }
    require_equal(made, (*client_config.CLIENT_CONFIG, worker.VERSIONS))
    one = rule("has(self.url) != has(self.service)", client_config.ONE_OF, "Required")
    return mapping("An existing admission webhook.", made, one)


def _service() -> Schema:
    port = rule(f"1 <= self && self <= {MAX_PORT}", client_config.PORT_RANGE)
    made = {
        "namespace": text(minLength=1),
        "name": text(minLength=1),
        "path": text("Default: /."),
        "port": whole("Default: 443.", port),
    }
    require_equal(made, client_config.SERVICE)
    return mapping("A Service of the cluster.", made, required=["namespace", "name"])


def _hook() -> Schema:
    kind = {"apiVersion": text(), "kind": text(minLength=1)}
    require_equal(kind, hook_target.KIND_FIELDS)
    made = {"path": _file(""), "snapshotsOf": array("", mapping("", kind, required=["kind"]))}
    require_equal(made, hook_target.FIELDS)
    return mapping("From files only.", made)


def _file(description: str) -> Schema:
    return text(description, minLength=1)


def _bundle() -> Schema:
    return text("PEM certificates of CAs in base64. Default: the system's CAs.", format="byte", minLength=1)
