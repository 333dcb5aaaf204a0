"""A manager of controller-runtime as a process: real webhooks, no cluster behind it."""

import http.client
import os
import ssl
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from tests.caching.servers import free_port
from tests.integration.process import WAIT_SECONDS

BUILT = Path(__file__).parent / "controller-runtime/bin"

_POLL_SECONDS = 0.02

_KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: nowhere, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
users: [{name: nobody, user: {}}]
current-context: nowhere
"""
"""A manager wants to know a cluster. Webhooks that read nothing never call it."""


def built(name):
    """The program; the test fails if it has not been built."""
    program = BUILT / name
    assert program.exists(), f"{program} is not there: build it with `make -C {BUILT.parent} build`"
    return program


@contextmanager
def manager(folder, pair):
    """Serve with this certificate and key; gives the port. ``folder`` is an empty one, for its files."""
    certificate, key = pair
    (folder / "tls.crt").write_bytes(Path(certificate).read_bytes())
    (folder / "tls.key").write_bytes(Path(key).read_bytes())
    (folder / "kubeconfig").write_text(_KUBECONFIG)
    port = free_port()
    process = subprocess.Popen(
        [built("webhook"), "--webhook-cert-path", folder, "--webhook-port", str(port)],
        env={**os.environ, "KUBECONFIG": str(folder / "kubeconfig")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(process, port)
        yield port
    finally:
        process.kill()
        process.wait(WAIT_SECONDS)


def _wait(process, port):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    ends = time.monotonic() + WAIT_SECONDS
    while True:
        assert process.poll() is None, f"the manager ended with {process.returncode}"
        client = http.client.HTTPSConnection("127.0.0.1", port, timeout=WAIT_SECONDS, context=context)
        try:
            client.request("GET", "/")
            client.getresponse().read()
        except ConnectionRefusedError:
            assert time.monotonic() < ends, "the manager does not listen"
            time.sleep(_POLL_SECONDS)
        else:
            return
        finally:
            client.close()
