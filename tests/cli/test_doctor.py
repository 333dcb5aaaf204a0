"""``doctor``: what could lock the cluster, before it is registered."""

import json

import pytest

from tests.cli.test_check import policy, written

__all__ = ["written"]

SERVICE = ("--service", "gw/gateway:8443")
NODES = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes"]}


def report(run, path, *flags, code=0):
    """The JSON report."""
    done = run("doctor", "--policies", path, *SERVICE, *flags, "-o", "json")
    assert done.code == code, done.err
    return json.loads(done.out)


def test_nothing_is_found(run, written):
    """A narrow policy: exit 0, and what stays possible."""
    done = run("doctor", "--policies", written(policy("a")), *SERVICE)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("While no gateway answers, these stay possible:\n    gateway, cluster DNS, ")


def test_a_finding_that_refuses(run, written):
    """Exit 1; the rule, the policy and the remedy stand with it."""
    done = run("doctor", "--policies", written(validating=[policy("n", rules=[NODES])]), *SERVICE)
    assert (done.code, done.err) == (1, "")
    first, of, _, remedy, patch, *_ = done.out.splitlines()
    where = "ValidatingWebhookConfiguration/admission-gateway/group.n.example.com webhooks[0].rules[0]"
    assert first == f"refuse: lockout: {where}"
    assert of == "    of team/n.example.com"
    assert remedy == "    remedy: move nodes to a policy of their own that fails open, or leave them out"
    assert patch == "        failurePolicy: Ignore"
    assert "nodes" not in done.out.splitlines()[-2]


def test_force_is_loud(run, written):
    """The report is the same, the exit code 0, and the error output says so."""
    path = written(validating=[policy("n", rules=[NODES])])
    refused = run("doctor", "--policies", path, *SERVICE)
    forced = run("doctor", "--policies", path, *SERVICE, "--force")
    assert (forced.code, forced.out) == (0, refused.out)
    assert forced.err.startswith("FORCED: ")
    assert run("doctor", "--policies", written(policy("a")), *SERVICE, "--force").err == ""


def test_json(run, written):
    """One document of a version: findings, what is promised, what is blocked."""
    found = report(run, written(validating=[policy("n", rules=[NODES])]), code=1)
    assert (found["apiVersion"], found["kind"]) == ("admission-gateway.dev/doctor/v1alpha1", "LockoutReport")
    assert found["refused"] is True
    assert [(each["severity"], each["code"]) for each in found["findings"]] == [("refuse", "lockout")]
    assert {each["resource"] for each in found["blocked"]} == {"nodes"}
    assert {each["about"] for each in found["promised"]} > {"gateway", "cluster DNS", "events"}
    assert found["notChecked"]


def test_render_warns_of_it(run, written):
    """The objects are the same; a finding that only warns is left to doctor."""
    path = written(validating=[policy("n", rules=[NODES])])
    done = run("render", path, *SERVICE)
    assert done.code == 0
    assert "warning: lockout: ValidatingWebhookConfiguration/" in done.err
    assert "FORCED" not in done.err
    events = NODES | {"resources": ["events"]}
    assert "lockout" not in run("render", written(validating=[policy("e", rules=[events])]), *SERVICE).err


def test_redis_must_start(run, written):
    """The host in its URL is in a namespace of the cluster."""
    pods = NODES | {"resources": ["pods"]}
    path = written(validating=[policy("p", rules=[pods])])
    found = report(run, path, "--exclude-namespace", "kube-system", "--redis", "redis://cache.redis.svc:6379")
    assert {each["about"] for each in found["blocked"]} == {"Redis"}


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--redis", "http://x"), "--redis: "),
        (("--kube-version", "1.2"), "--kube-version"),
        (("--service", "gw"), "is not NAMESPACE/NAME"),
        (("--url", "https://gw.example.com"), "exactly one of --service and --url"),
        (("--policies", "/nowhere"), "/nowhere"),
        (("--ca-bundle", "/nowhere"), "--ca-bundle: /nowhere"),
        (("-o", "yaml"), "'yaml' is not one of"),
        (
            ("--kubeconfig", "/nowhere"),
            "the kubeconfig file /nowhere: [Errno 2] No such file",
        ),
        (("--cluster",), "set --kubeconfig outside of a cluster"),
    ],
)
def test_wrong_flags(run, written, flags, words):
    """Exit 2, and which flag is wrong."""
    done = run("doctor", "--policies", written(policy("a")), *SERVICE, *flags)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


def test_without_policies(run):
    """Exit 2, and the flag that names them."""
    done = run("doctor", *SERVICE)
    assert done.code == 2
    assert "no policies: set --policies" in done.err


def test_errors_in_the_policies(run, written):
    """What has an error is not registered: exit 2, with the error."""
    done = run("doctor", "--policies", written(policy("a", failurePolicy="Perhaps")), *SERVICE)
    assert (done.code, done.out) == (2, "")
    assert 'Unsupported value: "Perhaps"' in done.err


def test_a_gateway_outside_of_the_cluster(run, written):
    """By its URL it is not known where its Pods are, so they are not promised."""
    done = run("doctor", "--policies", written(policy("a")), "--url", "https://gw.example.com")
    assert done.code == 0
    assert "gateway" not in done.out.splitlines()[1].split(", ")[0]
