"""Workers: how one is reached, and what becomes of the policies of one that cannot be."""

import base64
import json

import pytest

from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.policies.workers.grpc_names import is_local, target_hosts
from gateway.policies.workers.targets import (
    GrpcTarget,
    HookTarget,
    QueueTarget,
    ServiceReference,
    WebhookTarget,
    Worker,
)
from tests.authorities import Authority

AUTHORITY = Authority().pem


def test_good_worker(load_text):
    """A Worker is its name, its target, its command, and the directory of its file."""
    loaded = load_text("""
apiVersion: admission-gateway.dev/v1alpha1
kind: Worker
metadata: {name: labels}
spec:
  grpc:
    target: unix:labels.sock
    command: [python, -m, labels]
""")
    assert not loaded.errors
    assert loaded.workers == {
        "labels": Worker(
            name="labels",
            grpc=GrpcTarget(target="unix:labels.sock", command=("python", "-m", "labels"), directory="/etc/policies"),
            place=loaded.workers["labels"].place,
        )
    }
    assert str(loaded.workers["labels"].place) == "policies.yaml:2"


@pytest.mark.parametrize("target", ["unix:a%41.sock", "unix:/run/a#b", "unix:/run/a?b"])
def test_no_target_is_what_grpc_reads_as_something_else(target):
    """gRPC decodes percent signs, and cuts a path at # and ?: the worker would never be found."""
    assert target_hosts(target) is None


def test_a_socket_must_fit_where_its_file_is(load_text):
    """A relative path is made absolute, and its length is checked when loaded, not when the gateway listens."""
    loaded = load_text(
        """
apiVersion: admission-gateway.dev/v1alpha1
kind: Worker
metadata: {name: labels}
spec: {grpc: {target: "unix:%s"}}
"""
        % ("a" * 100)
    )
    assert "in /etc/policies its path has more than 107 bytes" in str(loaded.errors[0])


def test_a_worker_that_the_gateway_starts_needs_no_target(load_text):
    """The gateway makes a socket for it."""
    loaded = load_text("""
apiVersion: admission-gateway.dev/v1alpha1
kind: Worker
metadata: {name: labels}
spec: {grpc: {command: [python, -m, labels]}}
""")
    assert not loaded.errors
    assert loaded.workers["labels"].grpc.target == ""


@pytest.mark.parametrize(
    ("target", "hosts"),
    [
        ("localhost:50051", ("localhost",)),
        ("labels.policies.svc.cluster.local.:1", ("labels.policies.svc.cluster.local.",)),
        ("my_service:65535", ("my_service",)),
        ("10.0.0.1:80", ("10.0.0.1",)),
        ("[::1]:80", ("::1",)),
        ("dns:///labels:50051", ("labels",)),
        ("ipv4:127.0.0.1:80", ("127.0.0.1",)),
        ("ipv4:127.0.0.1:80,127.0.0.2:81", ("127.0.0.1", "127.0.0.2")),
        ("ipv6:[fe80::1]:80", ("fe80::1",)),
        ("unix:labels.sock", ()),
        ("unix:/run/labels.sock", ()),
        ("unix:///run/labels.sock", ()),
        ("unix:" + "a" * 107, ()),
    ],
)
def test_targets(target, hosts):
    """A target is a gRPC name with a port, or a Unix socket."""
    assert target_hosts(target) == hosts


@pytest.mark.parametrize(
    "target",
    [
        "labels",
        "labels:",
        "labels:0",
        "labels:65536",
        "labels:http",
        "labels:٣",
        ":80",
        "-a:80",
        "a..b:80",
        "a b:80",
        "a:80\n",
        "a" * 255 + ":80",
        "http://labels:80",
        "https://labels:80",
        "dns:labels:80",
        "dns://8.8.8.8/labels:80",
        "dns:///labels",
        "dns:50051",
        "unix:50051\n",
        "xds:80",
        "xds:///labels",
        "vsock:1:2",
        "ipv4:labels:80",
        "ipv4:[::1]:80",
        "ipv4:127.0.0.1",
        "ipv4:",
        "ipv6:127.0.0.1:80",
        "ipv6:::1:80",
        "[::1]",
        "[labels]:80",
        "unix:",
        "unix://",
        "unix:///",
        "unix://labels/a.sock",
        "unix:a\0b",
        "unix:" + "a" * 108,
        "unix-abstract:labels",
    ],
)
def test_no_targets(load_documents, worker, errors, target):
    """Anything else is refused, and the message says what a target looks like."""
    (error,) = errors(load_documents(worker({"spec.grpc.target": target})))
    assert error.startswith("spec.grpc.target: Invalid value: ")
    assert "must be HOST:PORT, dns:///HOST:PORT, ipv4:ADDRESS:PORT" in error


@pytest.mark.parametrize(
    ("target", "local"),
    [
        ("unix:a.sock", True),
        ("localhost:80", True),
        ("dns:///localhost:80", True),
        ("127.0.0.1:80", True),
        ("[::1]:80", True),
        ("ipv4:127.0.0.1:80", True),
        ("ipv4:127.0.0.1:80,127.0.0.1:81", False),
        ("0.0.0.0:80", False),
        ("labels:80", False),
        ("ipv4:10.0.0.1:80", False),
    ],
)
def test_targets_of_commands(load_documents, worker, errors, target, local):
    """A worker that the gateway starts listens on one address of this machine that no other machine can reach."""
    found = errors(load_documents(worker({"spec.grpc": {"target": target, "command": ["run"]}})))
    assert is_local(target) is local
    assert (found == []) is local
    if not local:
        assert "a worker started by command listens on this machine only" in found[0]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"spec": ...}, "spec: Required value"),
        ({"spec": None}, "spec: Required value"),
        ({"spec": []}, 'spec: Invalid value: "array": must be of type object'),
        (
            {"spec.grpc": ...},
            "spec: Required value: must specify exactly one of grpc, queue, webhook, hook",
        ),
        ({"spec.grpc": "x"}, 'spec.grpc: Invalid value: "string": must be of type object'),
        ({"spec.grpc.target": ...}, "spec.grpc.target: Required value"),
        ({"spec.grpc.target": ""}, "spec.grpc.target: Required value"),
        ({"spec.grpc.target": 80}, 'spec.grpc.target: Invalid value: "integer": must be of type string'),
        ({"spec.grpc.command": []}, "spec.grpc.command: Required value: must name a program, or be left out"),
        ({"spec.grpc.command": "a b"}, 'spec.grpc.command: Invalid value: "string": must be of type array'),
        ({"spec.grpc.retries": 3}, 'spec.grpc.retries: unknown field "spec.grpc.retries"'),
        ({"spec.http": {}}, 'spec.http: unknown field "spec.http"'),
        ({"extra": 1}, 'extra: unknown field "extra"'),
        ({"metadata": ...}, "metadata.name: Required value: name or generateName is required"),
        ({"metadata": []}, 'metadata: Invalid value: "array": must be of type object'),
        ({"metadata.namespace": "a"}, "metadata.namespace: Forbidden: not allowed on this type"),
        ({"metadata.nam": "a"}, 'metadata.nam: unknown field "metadata.nam"'),
        ({"spec.grpc.connections": 0}, "spec.grpc.connections: Invalid value: 0: must be between 1 and 64, inclusive"),
        (
            {"spec.grpc.connections": 65},
            "spec.grpc.connections: Invalid value: 65: must be between 1 and 64, inclusive",
        ),
        (
            {"spec.grpc.connections": "4"},
            'spec.grpc.connections: Invalid value: "string": must be of type integer',
        ),
        (
            {"spec.grpc.connections": 1.5},
            'spec.grpc.connections: Invalid value: "number": must be of type integer',
        ),
        (
            {"spec.grpc.connections": True},
            'spec.grpc.connections: Invalid value: "boolean": must be of type integer',
        ),
    ],
)
def test_validation(load_documents, worker, errors, change, expected):
    """Each error has its path; the Worker is left out, and the configuration stands."""
    loaded = load_documents(worker(change))
    assert errors(loaded) == [expected]
    assert loaded.workers == {}
    assert not loaded.fatal


@pytest.mark.parametrize("field", ["queue", "webhook", "hook"])
def test_one_transport(load_documents, worker, errors, field):
    """A Worker is reached in one way: two of them are an error, of which nothing else is said."""
    (error,) = errors(load_documents(worker({"spec": {field: {}, "grpc": {"target": "a:1"}}})))
    transports = ", ".join(sorted(["grpc", field], key=["grpc", "queue", "webhook", "hook"].index))
    assert error.startswith("spec: Invalid value: ")
    assert all(name in error for name in transports.split(", "))
    assert "must specify exactly one of grpc, queue, webhook, hook" in error


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"queue": {"stream": "admission:labels", "keyFile": "labels.key"}},
            {"queue": QueueTarget(stream="admission:labels", key_file="labels.key", directory="/etc/policies")},
        ),
        (
            {"webhook": {"url": "https://hooks.example.com/judge"}},
            {"webhook": WebhookTarget(url="https://hooks.example.com/judge")},
        ),
        (
            {
                "webhook": {
                    "service": {"namespace": "n", "name": "s", "path": "/p", "port": 8443},
                    "caBundle": base64.b64encode(AUTHORITY).decode(),
                    "admissionReviewVersions": ["v1beta1", "v1"],
                }
            },
            {
                "webhook": WebhookTarget(
                    service=ServiceReference(namespace="n", name="s", path="/p", port=8443),
                    ca_bundle=AUTHORITY,
                    review_versions=("v1beta1", "v1"),
                )
            },
        ),
        ({"hook": {"path": "validate.sh"}}, {"hook": HookTarget(path="validate.sh", directory="/etc/policies")}),
    ],
)
def test_other_transports(load_text, worker, spec, expected):
    """A queue, a webhook and a hook are read; relative paths begin in the directory of the file."""
    loaded = load_text(json.dumps(worker({"spec": spec})))
    assert not loaded.errors
    (found,) = loaded.workers.values()
    assert {name: getattr(found, name) for name in ("grpc", "queue", "webhook", "hook")} == {
        "grpc": None,
        "queue": None,
        "webhook": None,
        "hook": None,
    } | expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"queue": {"keyFile": "k"}}, "spec.queue.stream: Required value"),
        ({"queue": {"stream": "s"}}, "spec.queue.keyFile: Required value"),
        ({"queue": {"stream": "a b", "keyFile": "k"}}, 'spec.queue.stream: Invalid value: "a b": must be 1 to 200'),
        ({"queue": {"stream": "{a}", "keyFile": "k"}}, 'spec.queue.stream: Invalid value: "{a}": must be 1 to 200'),
        ({"queue": {"stream": "s" * 201, "keyFile": "k"}}, "spec.queue.stream: Invalid value: "),
        ({"queue": {"stream": 1, "keyFile": "k"}}, "spec.queue.stream: Invalid value: "),
        ({"queue": {"stream": "s", "keyFile": "a\0b"}}, "spec.queue.keyFile: Invalid value: "),
        ({"queue": {"stream": "s", "keyFile": "k", "url": "redis://h"}}, "spec.queue.url: "),
        ({"queue": []}, 'spec.queue: Invalid value: "array": must be of type object'),
        ({"webhook": {}}, "spec.webhook: Required value: exactly one of url or service is required"),
        ({"webhook": {"url": "http://h"}}, "spec.webhook.url: Invalid value: "),
        (
            {"webhook": {"url": "https://h", "admissionReviewVersions": ["v2"]}},
            "spec.webhook.admissionReviewVersions: ",
        ),
        (
            {"webhook": {"service": {"name": "a"}}},
            "spec.webhook.service.namespace: Required value",
        ),
        (
            {"webhook": {"service": {"namespace": "a"}}},
            "spec.webhook.service.name: Required value",
        ),
        (
            {"webhook": {"url": "https://h", "caBundle": "%%"}},
            'spec.webhook.caBundle: Invalid value: "%%": illegal base64 data at input byte 0',
        ),
        (
            {"webhook": {"url": "https://h", "caBundle": ""}},
            "spec.webhook.caBundle: Required value: must hold the PEM certificates",
        ),
        (
            {"webhook": {"url": "https://h", "caBundle": "UEVN"}},
            'spec.webhook.caBundle: Invalid value: "UEVN": unable to load root certificates: unable to parse bytes',
        ),
        ({"hook": {}}, "spec.hook.path: Required value"),
        ({"hook": {"path": ""}}, "spec.hook.path: Required value"),
        ({"hook": {"path": "a\0b"}}, "spec.hook.path: Invalid value: "),
    ],
)
def test_validation_of_other_transports(load_documents, worker, errors, spec, expected):
    """Each error has its path; the Worker is left out."""
    loaded = load_documents(worker({"spec": spec}))
    (error,) = errors(loaded)
    assert error.startswith(expected)
    assert loaded.workers == {}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["a", ""], "spec.grpc.command[1]: Required value"),
        (["a", 1], 'spec.grpc.command[1]: Invalid value: "integer": must be of type string'),
        (["a\0b"], 'spec.grpc.command[0]: Invalid value: "a\\x00b": must not contain a zero byte'),
    ],
)
def test_words_of_commands(load_documents, worker, errors, command, expected):
    """A command is a list of words that a program can be started with."""
    (error,) = errors(load_documents(worker({"spec.grpc": {"target": "unix:a", "command": command}})))
    assert error.startswith(expected)


@pytest.mark.parametrize("connections", [None, 1, 64])
def test_connections(load_documents, worker, connections):
    """A Worker may say how many connections it is given; else the process does."""
    loaded = load_documents(worker({"spec.grpc.connections": connections}))
    assert not loaded.errors
    assert loaded.workers["labels"].grpc.connections == connections


def test_metadata_of_the_api_server(load_documents, worker):
    """What kubectl prints of an object's metadata is accepted and without effect."""
    metadata = {
        "name": "labels",
        "uid": "1",
        "resourceVersion": "5",
        "generation": 1,
        "managedFields": [],
        "labels": {},
    }
    assert not load_documents(worker({"metadata": metadata})).errors


def test_policies_of_a_broken_worker(load_documents, worker, configuration, policy):
    """Each policy that names an invalid Worker has a fault which says what is wrong with it; the others have none."""
    loaded = load_documents(
        worker({"spec.grpc.target": ...}),
        worker({"metadata.name": "other"}),
        configuration(policy(), policy({"name": "a.b.c", "worker": "other"})),
    )
    broken, sound = loaded.mutating
    assert list(loaded.workers) == ["other"]
    assert broken.fault == (
        'policies[0].worker: worker "labels" is invalid: spec.grpc.target: Required value (in 0.json:1)'
    )
    assert broken.worker == "labels"
    assert sound.fault is None


def test_two_workers_of_one_name(load_documents, worker):
    """Two Workers of one name are fatal: the worker that judges is ambiguous."""
    loaded = load_documents(worker(), worker())
    assert loaded.fatal
    assert str(loaded.errors[0]) == '1.json:1: metadata.name: Duplicate value: "labels"; the first is in 0.json:1'


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"hook": {"path": "/a"}}, "spec.hook: Forbidden: an object of the cluster cannot have a hook"),
        ({"grpc": {"command": ["a"]}}, "spec.grpc.command: Forbidden: an object of the cluster cannot have a command"),
        (
            {"grpc": {"target": "unix:/a"}},
            "spec.grpc.target: Forbidden: an object of the cluster cannot name a Unix socket",
        ),
        ({"grpc": {"target": "unix-abstract:a"}}, "spec.grpc.target: Invalid value"),
    ],
)
def test_an_object_of_the_cluster_starts_no_program(worker, spec, expected):
    """What would, or is in the gateway's pod, is an error there, whatever the API server has accepted."""
    text = json.dumps(worker({"spec": spec})).encode()
    loaded = load([SourceText(name="Worker/labels", content=text, in_cluster=True)])
    assert not loaded.workers
    assert loaded.errors[0].text.startswith(expected)
