"""A gateway process, called over one connection as kube-apiserver calls it."""

from dataclasses import dataclass

from tests.integration.client import Client
from tests.integration.running import source

EVERYTHING = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]

WORKER_STARTUP_TIMEOUT = 60
"""Seconds until a worker is described. A Java virtual machine on a loaded machine takes several."""


@dataclass(frozen=True, kw_only=True)
class Served:
    """A worker's argv, and its policies."""

    argv: list
    mutating: list
    validating: list


def called(serving, trust, folder, behind, requests):
    """The answers of a gateway with this worker to these requests, in bytes."""
    text = source(
        workers={"judge": {"target": "unix:worker.sock", "command": behind.argv}},
        mutating=behind.mutating,
        validating=behind.validating,
    )
    (folder / "policies.yaml").write_text(text)
    process = serving(
        "--policies", folder / "policies.yaml", "--worker-startup-timeout", WORKER_STARTUP_TIMEOUT
    ).ready()
    try:
        with Client(process.port, trust) as client:
            return [client.send(request) for request in requests]
    finally:
        process.stop()
