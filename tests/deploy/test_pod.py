"""The rendered pod as the kubelet would start it, without a container: its volumes as files, its arguments, `serve`."""

import json
import socket
import ssl

import pytest
import yaml

from tests.authorities import Authority
from tests.deploy.chart import NAME, flags, template
from tests.e2e.worker_process import WorkerProcess
from tests.integration.client import Client, message
from tests.integration.fixtures import serve
from tests.traffic import recording

__all__ = ["serve"]

CREDENTIALS = {
    "bearer-tokens": "a-token-of-at-least-32-characters-0\n",
    "basic-auth": "kube-apiserver:a-password-of-32-characters-00000\n",
    "path-secrets": "a-secret-of-at-least-32-characters-1\n",
    "admin-tokens": "a-token-of-at-least-32-characters-2\n",
}
SEAL_KEY = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
OWN_FILES = {"namespaces.yaml": "{apiVersion: v1, kind: Namespace, metadata: {name: t}}\n"}
"""What is in a ConfigMap that is not the chart's."""
NO_REDIS = "redis://127.0.0.1:1"
NO_API_SERVER = "https://127.0.0.1:1"


@pytest.fixture
def pair():
    """No flags: the chart names certificate and key."""
    return ()


@pytest.fixture
def worker():
    """Start a worker of the SDK that listens at this address."""
    started = []

    def start(address):
        started.append(WorkerProcess(address, "-m", "admission_worker.samples"))
        return started[-1].ready()

    yield start
    for process in started:
        process.stop()


def free_port():
    """A port at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def deployment(objects, name):
    """The spec of the pods of a Deployment."""
    (found,) = [each for each in objects if (each["kind"], each["metadata"]["name"]) == ("Deployment", name)]
    return found["spec"]["template"]["spec"]


class Pod:
    """The rendered gateway's pod below ``root``. ``server`` issued its certificate, ``callers`` its clients'."""

    def __init__(self, root, text):
        self.root, self.server, self.callers = root, Authority("server"), Authority("callers")
        self.objects = list(yaml.safe_load_all(text))
        self.spec = deployment(self.objects, NAME)
        (self.container,) = self.spec["containers"]
        for mount in self.container["volumeMounts"]:
            self._mount(mount)

    def _mount(self, mount):
        """A volume as the kubelet writes it: files in a folder of their own, behind two links."""
        (volume,) = [each for each in self.spec["volumes"] if each["name"] == mount["name"]]
        folder = self.root / mount["mountPath"].lstrip("/")
        folder.mkdir(parents=True)
        if "emptyDir" in volume:
            return
        (folder / "..2026_11_23").mkdir()
        (folder / "..data").symlink_to("..2026_11_23")
        for key, content in self._content(volume).items():
            (folder / "..2026_11_23" / key).write_text(content)
            (folder / key).symlink_to(f"..data/{key}")

    def _content(self, volume):
        if "configMap" in volume:
            maps = {each["metadata"]["name"]: each["data"] for each in self.objects if each["kind"] == "ConfigMap"}
            return maps.get(volume["configMap"]["name"], OWN_FILES)
        pair = self.server.issue(f"{NAME}.{NAME}.svc", "localhost")
        return {
            "tls": {
                "tls.crt": pair.certificate.decode(),
                "tls.key": pair.key.decode(),
                "ca.crt": self.server.pem.decode(),
            },
            "callers": {"ca.crt": self.callers.pem.decode(), **CREDENTIALS},
            "seal": {"seal.keys": SEAL_KEY},
        }.get(volume["name"], {})

    def arguments(self):
        """What follows `serve`: the container's, with paths below the root and free ports."""
        command, *given = self.container["args"]
        assert command == "serve"
        for each in given:
            flag, _, value = each.partition("=")
            if flag in {"--listen", "--admin-listen"}:
                yield f"{flag}=127.0.0.1:0"
            elif flag == "--cluster":
                yield f"--kubeconfig={self._kubeconfig()}"
            else:
                yield f"{flag}={self.root}{value}" if value.startswith("/") else each

    def _kubeconfig(self):
        """Instead of the service account: of an API server that is not there."""
        path = self.root / "kubeconfig"
        named = {
            "name": "x",
            "cluster": {"server": NO_API_SERVER},
            "context": {"cluster": "x", "user": "x"},
            "user": {},
        }
        content = {"apiVersion": "v1", "kind": "Config", "current-context": "x"}
        path.write_text(json.dumps(content | {kind: [named] for kind in ("clusters", "contexts", "users")}))
        return path

    def environment(self):
        """The container's variables; those from Secrets are of a Redis that is not there."""
        return {each["name"]: each.get("value", NO_REDIS) for each in self.container.get("env", ())}

    def probes(self, gateway):
        """What the kubelet's requests get, by path."""
        kinds = ("startupProbe", "livenessProbe", "readinessProbe")
        paths = {self.container[kind]["httpGet"]["path"] for kind in kinds}
        assert {self.container[kind]["httpGet"]["port"] for kind in kinds} == {"admin"}
        return {path: gateway.page(path)[0] for path in paths}

    def client(self, port):
        """kube-apiserver, with its certificate."""
        context = ssl.create_default_context(cadata=self.server.pem.decode())
        context.load_cert_chain(*self.callers.issue(subject="kube-apiserver").write(self.root))
        return Client(port, context)


OWN_CERTIFICATE = ("--set", "tls.existingSecret=gateway")
FILES_ONLY = ("--set", "cluster.policies=false", *OWN_CERTIFICATE)


def test_a_pod_waits_for_the_clusters_policies(tmp_path, serve):
    """With the default values, the gateway is not ready until it has read the objects, and not restarted meanwhile."""
    pod = Pod(tmp_path, template(*OWN_CERTIFICATE))
    gateway = serve(*pod.arguments(), env=pod.environment()).ready()
    assert pod.probes(gateway) == {"/livez": 200, "/readyz": 503}


def test_a_pod_without_policies_is_ready(tmp_path, serve):
    """With files only, the gateway is ready, though it has none and cannot reach the API server."""
    pod = Pod(tmp_path, template(*FILES_ONLY))
    gateway = serve(*pod.arguments(), env=pod.environment()).ready()
    assert pod.probes(gateway) == {"/livez": 200, "/readyz": 200}
    with pod.client(gateway.port) as client:
        assert client.send(message(recording("pod-create.1v"))).response["allowed"] is True


def test_a_pod_with_everything_judges(tmp_path, serve, worker):
    """With all else on, the gateway is ready and the chart's own worker judges, while Redis cannot be reached."""
    port = free_port()
    text = template(*flags("everything"), *FILES_ONLY, "--set", f"workers[0].port={port}")
    pod = Pod(tmp_path, text.replace(f"{NAME}-samples.{NAME}.svc:{port}", f"127.0.0.1:{port}"))
    (container,) = deployment(pod.objects, f"{NAME}-samples")["containers"]
    worker(*(each["value"] for each in container["env"] if each["name"] == "ADMISSION_WORKER_LISTEN"))
    gateway = serve(*pod.arguments(), env=pod.environment()).ready()
    assert pod.probes(gateway) == {"/livez": 200, "/readyz": 200}
    with pod.client(gateway.port) as client:
        status = client.send(message(recording("pod-create.1v"))).response["status"]
    assert status["code"] == 403
    assert status["message"].startswith('label "team" is required')
