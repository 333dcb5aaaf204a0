"""``--resolve``: a name that matches no webhook is reported before a call waits for it."""

import json

import pytest

from tests.integration.running import policy, source

WEBHOOKS = {"a": {"service": {"namespace": "hooks", "name": "judge"}}, "b": {"url": "https://Hooks.example.com:8443/b"}}


def workers():
    """Worker documents, one after another."""
    return "".join(
        "\n---\n"
        + json.dumps(
            {
                "apiVersion": "admission-gateway.dev/v1alpha1",
                "kind": "Worker",
                "metadata": {"name": name},
                "spec": {"webhook": webhook},
            }
        )
        for name, webhook in WEBHOOKS.items()
    )


@pytest.fixture
def warned(run, tmp_path):
    """The warnings of ``review`` with these names; it makes no call."""

    def review(*names, webhooks=True):
        services = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["services"]}
        text = source(workers={"scripted": f"unix:{tmp_path}/w.sock"}, validating=[policy("judge", rules=[services])])
        path = tmp_path / "policies.yaml"
        path.write_text(text + workers() * webhooks)
        flags = [word for name in names for word in ("--resolve", f"{name}=127.0.0.1:1")]
        done = run("review", "--policies", path, "--worker-startup-timeout", 0, *flags, tmp_path / "none.json")
        return [line for line in done.err.splitlines() if line.startswith("warning: --resolve ")]

    return review


def test_names_of_webhooks(warned):
    """A service's and a url's host are webhooks' names, in any case."""
    assert warned("judge.hooks.svc:443", "HOOKS.example.com:8443") == []


@pytest.mark.parametrize("name", ["judge.hook.svc:443", "judge.hooks.svc:8443", "judge:443"])
def test_names_without_a_webhook(warned, name):
    """The warning lists the names of the webhooks."""
    (warning,) = warned(name, "judge.hooks.svc:443")
    assert warning.startswith(f"warning: --resolve {name} matches no webhook of the configuration")
    assert warning.endswith("; webhooks: Hooks.example.com:8443, judge.hooks.svc:443")


def test_no_webhooks(warned):
    """Without webhooks, the warning states that."""
    (warning,) = warned("judge.hooks.svc:443", webhooks=False)
    assert warning.endswith("; webhooks: none")
