"""TLS to workers: what may be said of it, who has to be proven, and what is warned of."""

import base64

import pytest

from gateway.policies.workers.grpc_names import stays_here
from gateway.policies.workers.targets import GrpcTls
from tests.authorities import Authority

AUTHORITY = Authority().pem


def encoded(pem):
    return base64.b64encode(pem).decode()


def block(content):
    return encoded(b"-----BEGIN CERTIFICATE-----\n" + base64.b64encode(content) + b"\n-----END CERTIFICATE-----\n")


@pytest.fixture
def tls(load_documents, worker):
    """Loads one Worker with this TLS; what was read of it."""

    def load_tls(said, **grpc):
        loaded = load_documents(
            worker({"spec.grpc": {"target": "dns:///labels.policies.svc:50051", "tls": said, **grpc}})
        )
        assert not loaded.errors
        return loaded.workers["labels"].grpc.tls

    return load_tls


def test_no_tls(load_documents, worker):
    """Without the field, a worker is called in plain text."""
    assert load_documents(worker({"spec.grpc.tls": ...})).workers["labels"].grpc.tls is None


def test_everything(tls):
    """Files stay as they are written, and a bundle is its PEM."""
    files = {"certFile": "tls/gateway.crt", "keyFile": "/tls/gateway.key"}
    assert tls({"caFile": "ca.crt", "serverName": "labels", **files}) == GrpcTls(
        ca_file="ca.crt", cert_file="tls/gateway.crt", key_file="/tls/gateway.key", server_name="labels"
    )
    assert tls({"caBundle": encoded(AUTHORITY + AUTHORITY)}) == GrpcTls(
        ca_bundle=AUTHORITY + AUTHORITY, server_name="labels.policies.svc"
    )


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("dns:///labels.policies.svc:50051", "labels.policies.svc"),
        ("Labels.Policies.svc.:50051", "labels.policies.svc"),
        ("localhost:50051", "localhost"),
        ("10.0.0.1:50051", "labels"),
        ("dns:///[::1]:50051", "labels"),
        ("ipv4:10.0.0.1:50051,10.0.0.2:50051", "labels"),
        ("ipv6:[::1]:50051", "labels"),
        ("unix:labels.sock", "labels"),
        (None, "labels"),
    ],
)
def test_who_has_to_be_proven(tls, target, name):
    """Without serverName: the host of a name in DNS, and where there is none, the Worker's name."""
    change = {"target": target} if target else {"target": None, "command": ["run"]}
    assert tls({}, **change).server_name == name
    assert tls({"serverName": "other"}, **change).server_name == "other"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            None,
            (
                "spec.grpc.tls: Invalid value: null: must be of type object: {} is TLS with the system's authorities; "
                "without TLS, remove it"
            ),
        ),
        ("yes", 'spec.grpc.tls: Invalid value: "string": must be of type object'),
        ({"insecure": True}, 'spec.grpc.tls.insecure: unknown field "spec.grpc.tls.insecure"'),
        ({"caFile": ""}, "spec.grpc.tls.caFile: Required value: must name a PEM file, or be left out"),
        ({"caFile": 1}, 'spec.grpc.tls.caFile: Invalid value: "integer": must be of type string'),
        (
            {"caFile": "a\0b"},
            'spec.grpc.tls.caFile: Invalid value: "a\\x00b": must not contain a zero byte: no file has such a name',
        ),
        (
            {"caFile": "ca.crt", "caBundle": encoded(AUTHORITY)},
            "spec.grpc.tls.caBundle: Forbidden: must not be set together with caFile; remove one of them",
        ),
        (
            {"certFile": "tls.crt"},
            "spec.grpc.tls.keyFile: Required value: the private key that belongs to certFile",
        ),
        (
            {"keyFile": "tls.key"},
            "spec.grpc.tls.certFile: Required value: the certificate that belongs to keyFile",
        ),
        (
            {"serverName": ""},
            "spec.grpc.tls.serverName: Required value: must be a DNS name of the worker's certificate, or be left out",
        ),
        (
            {"serverName": "10.0.0.1"},
            (
                'spec.grpc.tls.serverName: Invalid value: "10.0.0.1": must be a DNS name: an address is the worker\'s '
                "of today, and another's tomorrow"
            ),
        ),
        (
            {"caBundle": ""},
            (
                "spec.grpc.tls.caBundle: Required value: must hold the PEM certificates of the authorities in base64, "
                "or be left out"
            ),
        ),
        (
            {"caBundle": "abc!"},
            'spec.grpc.tls.caBundle: Invalid value: "abc!": illegal base64 data at input byte 3',
        ),
        (
            {"caBundle": "Y2VydGlmaWNhdGU="},
            (
                'spec.grpc.tls.caBundle: Invalid value: "Y2VydGlmaWNhdGU=": unable to load root certificates: unable '
                "to parse bytes as PEM block"
            ),
        ),
    ],
)
def test_errors(load_documents, worker, errors, said, expected):
    """Each error has its path, and the Worker is left out: nothing is called in plain text because TLS is wrong."""
    loaded = load_documents(worker({"spec.grpc.tls": said}))
    assert errors(loaded) == [expected]
    assert loaded.workers == {}


@pytest.mark.parametrize(
    ("bundle", "error"),
    [
        (encoded(AUTHORITY[:-30]), "unable to parse bytes as PEM block"),
        (encoded(AUTHORITY + AUTHORITY[:200]), "a PEM block does not end, or holds what is no base64"),
        (
            encoded(AUTHORITY + AUTHORITY.replace(b"MII", b"M*I", 1)),
            "a PEM block does not end, or holds what is no base64",
        ),
        (encoded(AUTHORITY.replace(b"MII", b"MI", 1)), "certificate 1 is no base64"),
        (block(b""), "certificate 1 is no X.509 certificate"),
        (block(b"0"), "certificate 1 is no X.509 certificate"),
        (block(b"\x30\x01"), "certificate 1 is no X.509 certificate"),
        (block(b"\x30\x80\x00\x00"), "certificate 1 is no X.509 certificate"),
        (block(b"\x30\xff"), "certificate 1 is no X.509 certificate"),
        (block(b"\x30\x03\x30\x01\x00"), "certificate 1 is no X.509 certificate"),
        (block(b"\x31\x06\x30\x00\x30\x00\x03\x00"), "certificate 1 is no X.509 certificate"),
        (block(b"\x30\x06\x30\x00\x30\x00\x03\x00x"), "certificate 1 is no X.509 certificate"),
    ],
)
def test_bundles(load_documents, worker, errors, bundle, error):
    """A bundle is looked into when it is loaded, and only its beginning is repeated."""
    (reported,) = errors(load_documents(worker({"spec.grpc.tls": {"caBundle": bundle}})))
    assert reported.endswith(f'": unable to load root certificates: {error}')
    assert len(reported) < 250


@pytest.mark.parametrize("around", [b"# our authority\n%b", b"%b\n\n", b"subject=CN = authority\n%b"])
def test_bundles_with_comments(tls, around):
    """Text around PEM blocks is no error, and line ends may be those of Windows."""
    pem = around % AUTHORITY
    assert tls({"caBundle": encoded(pem)}).ca_bundle == pem
    assert tls({"caBundle": encoded(pem.replace(b"\n", b"\r\n"))})


def test_all_errors_at_once(load_documents, worker, errors):
    """One load reports all errors, those of other fields included."""
    said = {"caFile": "", "keyFile": "k", "serverName": "*", "x": 1}
    found = errors(load_documents(worker({"spec.grpc": {"target": "", "tls": said, "connections": 0}})))
    assert [error.partition(": ")[0] for error in found] == [
        "spec.grpc.target",
        "spec.grpc.tls.x",
        "spec.grpc.tls.caFile",
        "spec.grpc.tls.certFile",
        "spec.grpc.tls.serverName",
        "spec.grpc.connections",
    ]


# ------------------------------------------------------------------------------------------------ plain text


def plain(worker, name, target):
    return worker({"metadata.name": name, "spec.grpc": {"target": target}})


def test_plain_text_is_warned_of(load_documents, worker):
    """One warning for all workers that are sent documents in plain text over a network, at the first of them."""
    loaded = load_documents(plain(worker, "a", "a:1"), plain(worker, "b", "ipv4:127.0.0.1:1,10.0.0.1:1"))
    (warning,) = loaded.warnings
    assert str(warning) == (
        "0.json:1: spec.grpc.tls: what is sent to workers a, b leaves this machine unencrypted, and the gateway "
        "believes any answer from there; set tls, unless a mesh encrypts it"
    )
    assert not loaded.errors


@pytest.mark.parametrize(
    "target", ["unix:a.sock", "localhost:1", "127.0.0.1:1", "ipv4:127.0.0.1:1,127.0.0.1:2", "[::1]:1"]
)
def test_nothing_to_warn_of(load_documents, worker, target):
    """What stays on this machine needs no TLS; what has it needs no warning."""
    assert stays_here(target)
    assert load_documents(plain(worker, "a", target), worker()).warnings == ()
