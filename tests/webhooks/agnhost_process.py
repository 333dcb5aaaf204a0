"""Kubernetes' own agnhost webhook as a process: not ours, only started, called and stopped."""

import http.client
import ssl
import subprocess
import time
from pathlib import Path

from tests.caching.servers import free_port
from tests.integration.process import WAIT_SECONDS

_MODULE = Path(__file__).parent / "agnhost"
_POLL_SECONDS = 0.02


def agnhost_binary():
    """Where it has been built; the test fails if it has not been."""
    binary = _MODULE / "bin/agnhost-webhook"
    assert binary.exists(), f"{binary} is not there: build it with `make -C tests/webhooks/agnhost build`"
    return binary


class Agnhost:
    """One process, on a free port of its own choice."""

    def __init__(self, binary, pair, flags=()):
        certificate, key = pair
        self.port = free_port()
        self._process = subprocess.Popen(
            [binary, "--tls-cert-file", certificate, "--tls-private-key-file", key, "--port", str(self.port), *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def ready(self):
        """Wait until it answers."""
        ends = time.monotonic() + WAIT_SECONDS
        while True:
            assert self._process.poll() is None, f"agnhost ended with {self._process.returncode}"
            try:
                assert self.call("GET", "/readyz")[0] == 200
            except ConnectionRefusedError:
                assert time.monotonic() < ends, "agnhost does not listen"
                time.sleep(_POLL_SECONDS)
            else:
                return self

    def call(self, method, route, body=None, headers=None):
        """Status, headers and body of its answer without a gateway between; OSError where it drops the connection."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        client = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=WAIT_SECONDS, context=context)
        try:
            client.request(method, route, body, headers or {})
            response = client.getresponse()
            return response.status, response.headers, response.read()
        finally:
            client.close()

    def stop(self):
        """Leave nothing behind."""
        self._process.kill()
        self._process.wait(WAIT_SECONDS)
