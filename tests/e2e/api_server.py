"""A real kube-apiserver with its etcd (``apiserver/``): its users, its credentials for webhooks, its audit log.

It has no controllers: no namespace is ever gone, no Deployment makes Pods.
"""

import base64
import json
import os
import socket
import ssl
import subprocess
from pathlib import Path

import pytest

from gateway.registration.kubernetes_versions import REFERENCE, KubeVersion, read_version
from tests.authorities import Authority
from tests.integration.process import WAIT_SECONDS, Lines

_MODULE = Path(__file__).parent / "apiserver"

_KUBE = os.environ.get("KUBE", "")
RELEASE = read_version(_KUBE) or REFERENCE
"""Of the API server: `make e2e KUBE=1.N.P` chooses another one."""


def since(minor, what):
    """A mark for a test of ``what``, which the API server of 1.``minor`` was the first to have."""
    reason = f"{what}: from Kubernetes 1.{minor} on, and the API server is {_KUBE}"
    return pytest.mark.skipif(KubeVersion(1, minor) > RELEASE, reason=reason)


ADMIN, JANE = "admin", "jane"
"""Bearer tokens, which are the users' names: who may do anything, and who may edit what is in namespaces."""

_USERS = f'{ADMIN},{ADMIN},1,"system:masters"\n{JANE},{JANE},2,"developers"\n'

TOKEN, USER, PASSWORD = "a-token-for-webhooks", "hooks", "p:ss wörd"

_CREDENTIALS = {
    "certificate": {"client-certificate": "webhooks.crt", "client-key": "webhooks.key"},
    "renewed": {"client-certificate": "renewed.crt", "client-key": "renewed.key"},
    "token": {"token": TOKEN},
    "password": {"username": USER, "password": PASSWORD},
}
"""What it proves itself with to webhooks: to those at one port with a token, to those at another one with a password,
and to all others, if they want to see one, with a certificate; at a third port that is another CA's."""

_AUDITED = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "None", "users": ["system:apiserver"]}, {"level": "Request"}],
}
"""At this level the annotations of mutating webhooks are complete."""


def _admission(credentials, webhooks):
    base = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(credentials),
    }
    plugins = [
        {"name": name, "configuration": base | webhooks.get(name, {})}
        for name in ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")
    ]
    return {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins}


def _reserved_port():
    """A socket that keeps its port free for a server with SO_REUSEADDR: no other socket is given it meanwhile."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


class ApiServer:
    """One process. ``directory`` is an empty one, for its files; ``clients`` issued its client certificate, and
    ``renewed_clients`` that of the kind "renewed".

    ``flags`` are more of its flags, ``webhooks`` more members of the configuration of a plugin.
    """

    def __init__(self, directory, *flags, webhooks=None):
        program = _MODULE / "bin" / _KUBE / "apiserver"
        assert program.exists(), f"{program} is not there: build it with `make build-apiserver KUBE={_KUBE}`"
        self._authority = Authority("kube-apiserver")
        self.clients = Authority("kube-apiserver's clients")
        self.renewed_clients = Authority("kube-apiserver's clients from now on")
        self._ports = {kind: _reserved_port() for kind in ("token", "password", "renewed")}
        self.process = subprocess.Popen(
            [program, directory / "etcd", *self._flags(directory, webhooks or {}), *flags],
            # It ends when this pipe does, whatever becomes of us.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._out, self._err = Lines(self.process.stdout), Lines(self.process.stderr)
        self.url = ""

    def port(self, kind):
        """The port of webhooks at which it has these credentials, for a gateway; 0 is any other one."""
        return self._ports[kind].getsockname()[1] if kind in self._ports else 0

    def _kubeconfig(self):
        names = {kind: f"*.svc:{self.port(kind)}" if kind in self._ports else "*" for kind in _CREDENTIALS}
        users = [{"name": names[kind], "user": user} for kind, user in _CREDENTIALS.items()]
        return {"apiVersion": "v1", "kind": "Config", "users": users}

    def _flags(self, directory, webhooks):
        def write(name, content):
            (directory / name).write_text(content if isinstance(content, str) else json.dumps(content))
            return directory / name

        certificate, key = self._authority.issue("127.0.0.1").write(directory, "serving")
        accounts, account_key = self._authority.issue().write(directory, "service-accounts")
        self.clients.issue(subject="kube-apiserver").write(directory, "webhooks")
        self.renewed_clients.issue(subject="kube-apiserver").write(directory, "renewed")
        admission = _admission(write("webhooks", self._kubeconfig()), webhooks)
        # Service accounts' tokens are a controller's work; and DefaultStorageClass needs a cluster's own objects.
        disabled = "ServiceAccount,DefaultStorageClass,StorageObjectInUseProtection"
        return (
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--allow-privileged",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--token-auth-file={write('users.csv', _USERS)}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={accounts}",
            f"--service-account-signing-key-file={account_key}",
            f"--disable-admission-plugins={disabled}",
            f"--admission-control-config-file={write('admission', admission)}",
            f"--audit-policy-file={write('audit-policy', _AUDITED)}",
            "--audit-log-path=-",
        )

    def ready(self):
        """Wait until it is ready."""
        line = self._out.find(lambda line: line.startswith("serving "))
        assert line is not None, f"it ended with {self.process.wait(WAIT_SECONDS)}:\n" + "\n".join(self._err)
        self.url = line.removeprefix("serving ")
        return self

    @property
    def trust(self):
        """A client's TLS that trusts it."""
        return ssl.create_default_context(cadata=self._authority.pem.decode())

    def kubeconfig(self, folder, user=ADMIN):
        """A kubeconfig file in the folder, with a user's token."""
        trust = base64.b64encode(self._authority.pem).decode()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "e2e", "cluster": {"server": self.url, "certificate-authority-data": trust}}],
            "users": [{"name": user, "user": {"token": user}}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": user}}],
            "current-context": "e2e",
        }
        file = folder / f"{user}.kubeconfig"
        file.write_text(json.dumps(config))
        return file

    def audited(self, audit_id):
        """The annotations of one request in the audit log."""
        return json.loads(self.event(audit_id)).get("annotations", {})

    def event(self, audit_id):
        """The line of one request in the audit log, waiting for it: it is written after the response."""
        line = self._out.find(lambda line: audit_id in line)
        assert line is not None, f"no request {audit_id} in the audit log"
        return line

    def stop(self):
        """End it."""
        self.process.stdin.close()
        try:
            self.process.wait(WAIT_SECONDS)
        finally:
            self.process.kill()
            self.process.wait()
            for reserved in self._ports.values():
                reserved.close()
            self._out.all()
            self._err.all()
