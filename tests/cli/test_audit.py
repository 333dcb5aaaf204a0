"""What keeps an audit from beginning: exit code 2, and a line that says what to do."""

import pytest

from tests.integration.running import policy, source

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: a, user: {token: t}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
"""


@pytest.fixture
def policies(tmp_path):
    """A file of policies."""
    path = tmp_path / "policies.yaml"
    path.write_text(source(workers={"a": "dns:///a:1"}, validating=[policy("judge", worker="a")]))
    return path


@pytest.fixture
def kubeconfig(tmp_path):
    """A file that leads to no API server."""
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG)
    return path


def test_an_audit_needs_policies(run):
    """Files, hooks, or those in the cluster."""
    done = run("audit")
    assert done.code == 2
    assert "no policies: set --policies" in done.err


def test_an_audit_needs_a_cluster(run, policies, tmp_path):
    """Credentials that are missing are named."""
    done = run("audit", "--policies", policies, "--kubeconfig", tmp_path / "nothing")
    assert done.code == 2
    assert "nothing" in done.err
    assert "check that kubectl can use it" in done.err


def test_a_policy_that_does_not_exist_is_refused(run, policies, kubeconfig):
    """Before anything is read."""
    done = run("audit", "--policies", policies, "--kubeconfig", kubeconfig, "--policy", "other")
    assert done.code == 2
    assert "--policy other: no validating policy of this name; check prints them" in done.err


def test_an_api_server_that_is_away_is_an_error(run, policies, kubeconfig, monkeypatch):
    """After some attempts."""
    monkeypatch.setattr("gateway.audit.api_reader.DELAY_SECONDS", 0.0)
    done = run("audit", "--policies", policies, "--kubeconfig", kubeconfig)
    assert done.code == 2
    assert "error: Kubernetes API: GET /apis: ClientConnectorError" in done.err


def test_a_log_that_cannot_be_read_is_an_error(run, policies, kubeconfig, tmp_path):
    """Its name, and why."""
    done = run("audit", "--policies", policies, "--kubeconfig", kubeconfig, "--unjudged-from", tmp_path / "log")
    assert done.code == 2
    assert f"--unjudged-from {tmp_path / 'log'}: No such file or directory" in done.err
