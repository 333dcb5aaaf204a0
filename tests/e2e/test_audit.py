"""`audit` judges what exists, as kube-apiserver would have it judged, and what an outage let pass."""

import asyncio
import json
import signal
import subprocess
from time import monotonic

import pytest
import yaml

from gateway.audit.api_reader import PAGE, ApiReader
from gateway.audit.synthetic import USER
from gateway.cluster.client import KubernetesClient, collection_path
from tests.deploy.chart import RENDERED
from tests.e2e.api_server import JANE, ApiServer
from tests.e2e.client import Client, eventually
from tests.e2e.kinds import Kinds, define, validating
from tests.e2e.objects import config_map, deployment, namespace, pod
from tests.e2e.policies import CONFIG_MAPS, denies, echo, required_labels, rules
from tests.integration.process import COMMAND
from tests.integration.running import until

SECRETS = rules("secrets")
NOWHERE = "unix:/nonexistent/worker.sock"


@pytest.fixture
def command(cluster, api_server, tmp_path):
    """The command line of an audit of the test's namespace, by its policies."""

    def made(*flags, user="admin", within=True):
        line = [COMMAND, "audit", "--policies", cluster.policies, "--kubeconfig", api_server.kubeconfig(tmp_path, user)]
        return [*line, *(("--namespace", cluster.namespace) if within else ()), "--rate", "0", *flags]

    return made


@pytest.fixture
def audit(command):
    """Runs it; gives the document, or with ``-o`` the text."""

    async def run(*flags, code=1, **options):
        output = () if "-o" in flags else ("-o", "json")
        line = command(*flags, *output, **options)
        done = await asyncio.to_thread(subprocess.run, line, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr + done.stdout
        return done.stdout if "-o" in flags else json.loads(done.stdout)

    return run


async def create_config_maps(cluster, count, **labels):
    """That many of them, every second one with these labels."""
    objects = (config_map(f"c{index:03}", labels=labels if index % 2 else {}) for index in range(count))
    replies = await asyncio.gather(*(cluster.create(each) for each in objects))
    assert {each.code for each in replies} == {201}


def names(found, policy=0):
    return [each["name"] for each in found["policies"][policy]["findings"]]


async def test_existing_objects_are_judged_by_the_policies_of_now(cluster, audit):
    """Over several pages; the report names each violation, and what the policy says."""
    count = 2 * PAGE + 10
    await create_config_maps(cluster, count, team="a")
    cluster.write(validating=[required_labels("team", rules=CONFIG_MAPS, contact="team a")])
    found = await audit()
    (policy,) = found["policies"]
    # kube-root-ca.crt is a controller's, and there is none here.
    assert (policy["passed"], policy["violations"], policy["errors"]) == (count // 2, count // 2, 0)
    assert found["objects"] == count
    assert found["complete"]
    assert sorted(names(found)) == [f"c{index:03}" for index in range(0, count, 2)]
    assert {each["message"] for each in policy["findings"]} == {'label "team" is required'}
    text = await audit("-o", "text")
    assert f"test/required-labels.test.example.com: {count // 2} violations in {count} objects" in text
    assert f'  configmaps {cluster.namespace}/c000: label "team" is required' in text
    assert "contact: team a" in text


async def test_without_a_violation_it_exits_with_0(cluster, audit):
    """Also in a report for kubectl, which then replaces that of an earlier audit."""
    await create_config_maps(cluster, 2, team="a")
    cluster.write(validating=[required_labels(rules=CONFIG_MAPS)])
    (report,) = yaml.safe_load_all(await audit("-o", "policyreport", code=0))
    assert (report["kind"], report["metadata"]["namespace"]) == ("PolicyReport", cluster.namespace)
    assert report["summary"] == {"pass": 2, "fail": 0, "warn": 0, "error": 0, "skip": 0}


async def test_an_object_is_judged_as_if_it_were_created_now(cluster, audit):
    """As a dry run of the audit's own user; as an update where the rules have no CREATE; in a version of the rules."""
    assert (await cluster.create(deployment())).code == 201
    deployments = rules("deployments", group="apps", operations=("UPDATE", "DELETE"))
    members = ("operation", "dryRun", "options", "userInfo", "resource", "kind", "name", "namespace", "oldObject")
    cluster.write(
        validating=[
            echo(*members, name="update", rules=deployments),
            echo(*members, "object", name="create", rules=rules("deployments", group="apps")),
            echo(name="delete", rules=rules("deployments", group="apps", operations=("DELETE",))),
            echo(name="sub", rules=rules("deployments/scale", group="apps")),
        ]
    )
    found = await audit()
    update, create, delete, sub = found["policies"]
    said = json.loads(create["findings"][0]["message"][:-1].rpartition(', "object"')[0] + "}")
    assert said["operation"] == create["findings"][0]["operation"] == "CREATE"
    assert said["dryRun"]
    assert said["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]}
    assert said["userInfo"]["username"] == USER
    assert said["kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert (said["name"], said["namespace"], said["oldObject"]) == ("d", cluster.namespace, None)
    assert update["findings"][0]["operation"] == "UPDATE"
    assert '"oldObject": {' in update["findings"][0]["message"]
    assert [each["audited"] for each in (delete, sub)] == [False, False]
    assert "its rules name no CREATE or UPDATE" in delete["why"]


async def test_selectors_and_conditions_count_as_in_a_review(cluster, audit):
    """Labels of namespaces from the cluster; conditions about the object, and about the audit's user."""
    await create_config_maps(cluster, 4, team="a")
    await cluster.client.apply(namespace(cluster.namespace, labels={"tier": "x"}))
    mine = {"matchConditions": [{"name": "audit", "expression": f"request.userInfo.username == '{USER}'"}]}
    cluster.write(
        validating=[
            denies("no", name="tier", rules=CONFIG_MAPS, namespaceSelector={"matchLabels": {"tier": "x"}}),
            denies("no", name="other", rules=CONFIG_MAPS, namespaceSelector={"matchLabels": {"tier": "y"}}),
            denies("no", name="labels", rules=CONFIG_MAPS, objectSelector={"matchLabels": {"team": "a"}}),
            denies("no", name="user", rules=CONFIG_MAPS, **mine),
        ]
    )
    found = await audit()
    assert [each["violations"] for each in found["policies"]] == [4, 0, 2, 4]
    found = await audit("--exclude-namespace", cluster.namespace, code=0)
    assert found["objects"] == 0


async def test_no_value_of_a_secret_is_in_a_report(cluster, audit):
    """Whatever the policy says of it."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "hunter2"}}
    assert (await cluster.create(secret)).code == 201
    cluster.write(validating=[echo("object", rules=SECRETS)])
    for output in ("json", "text", "policyreport"):
        report = await audit("-o", output)
        assert "echo.test.example.com" in report
        assert "hunter2" not in report
        assert "aHVudGVyMg" not in report


async def test_an_audit_that_was_killed_goes_on(cluster, audit, command, tmp_path):
    """Nothing is lost, and nothing counts twice: the report is that of an audit that was not."""
    count = 3 * PAGE + 7
    await create_config_maps(cluster, count, team="a")
    cluster.write(validating=[required_labels("team", rules=CONFIG_MAPS), required_labels(name="b", rules=SECRETS)])
    state = tmp_path / "state"
    line = command("--state", state, "--rate", "200", "-o", "json")
    killed = await asyncio.to_thread(subprocess.Popen, line, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with killed:
        await until(state.exists)
        killed.send_signal(signal.SIGKILL)
    kept = json.loads(state.read_text())
    assert 0 < kept["current"]["objects"] < count
    found = await audit("--state", state)
    assert (found["policies"][0]["passed"], found["policies"][0]["violations"]) == (count // 2, count - count // 2)
    assert sorted(names(found)) == [f"c{index:03}" for index in range(0, count, 2)]
    assert found["started"] == kept["started"]
    assert not state.exists()


async def test_a_list_that_expires_goes_on(tmp_path):
    """By kube-apiserver's own token, after etcd was compacted between two pages; nothing is lost or comes twice."""
    started = await asyncio.to_thread(ApiServer(tmp_path, "--etcd-compaction-interval=1s").ready)
    reader = KubernetesClient(started.kubeconfig(tmp_path))
    path = collection_path("", "v1", "configmaps", "default")
    objects = [config_map(f"c{index:03}", namespace="default") for index in range(PAGE + 5)]
    try:
        await reader.connect()
        async with Client(started) as client:

            async def ready():
                return (await client.create(objects[0])).code in {201, 409}

            await eventually(ready)
            await asyncio.gather(*(client.create(each) for each in objects[1:]))
            first = await anext(ApiReader(reader).pages(path))

            async def expired():
                # Each write makes a revision, and old ones are what is compacted.
                await client.apply(objects[0] | {"data": {"time": str(monotonic())}})
                reply = await client.send("GET", path, limit=PAGE, **{"continue": first.token})
                return reply.code == 410

            await eventually(expired)
            rest = [page async for page in ApiReader(reader).pages(path, first.token)]
    finally:
        await reader.close()
        started.stop()
    found = [each["metadata"]["name"] for page in (first, *rest) for each in page.items]
    assert found == [each["metadata"]["name"] for each in objects]
    assert not any(page.restarted for page in rest)


async def test_what_cannot_be_read_or_judged_is_incomplete(cluster, audit):
    """A user who may not list; a worker that is away: exit code 2, and the report says what is missing."""
    await create_config_maps(cluster, 2)
    cluster.write(validating=[required_labels("team", rules=CONFIG_MAPS)])
    found = await audit(user=JANE, code=2)
    assert not found["complete"]
    assert 'cannot list resource "configmaps"' in found["incomplete"][0]
    cluster.write(workers={"samples": NOWHERE}, validating=[required_labels("team", rules=CONFIG_MAPS)])
    found = await audit("--worker-startup-timeout", "0.1", code=2)
    assert found["policies"][0]["errors"] == 2
    assert {each["reason"] for each in found["policies"][0]["findings"]} == {"CONFIGURATION"}


async def test_what_an_outage_let_pass_is_judged_again(cluster, audit, tmp_path):
    """Just that: the objects that a gateway's log names, by the policies that did not judge them."""
    assert (await cluster.create(config_map("before"))).code == 201
    away = {"samples": NOWHERE}
    policies = [required_labels("team", rules=CONFIG_MAPS, failurePolicy="Ignore"), denies("no", rules=SECRETS)]
    cluster.write(workers=away, validating=policies)
    log = tmp_path / "log"
    gateway = await cluster.start("--decision-log", log)
    await cluster.register(gateway.port)
    for name, labels in (("bad", {}), ("good", {"team": "a"}), ("gone", {})):
        assert (await cluster.create(config_map(name, labels=labels))).code == 201
    assert (await cluster.create(config_map("dry"), dryRun="All")).code == 201
    await until(lambda: log.read_text().count('"UnjudgedAdmission"') >= 4)
    gateway.stop()
    await cluster.unregister()
    assert (await cluster.send("DELETE", config_map("gone"))).code == 200
    cluster.write(validating=policies)
    found = await audit("--unjudged-from", log)
    assert names(found) == ["bad"]
    assert (found["policies"][0]["passed"], found["policies"][0]["violations"], found["objects"]) == (1, 1, 2)
    assert found["skipped"]["deleted since"] == 1
    assert sum(found["skipped"].values()) == 2


async def test_what_passed_without_a_gateway_is_judged_again(cluster, audit, tmp_path):
    """kube-apiserver's audit log names it: by all policies that are about it, in the version that they name."""
    about = required_labels("team", rules=CONFIG_MAPS, failurePolicy="Ignore")
    gateway = await cluster.enforce(validating=[about, denies("no", rules=SECRETS)])
    gateway.stop()
    replies = [
        await cluster.create(config_map(name, labels=labels)) for name, labels in (("bad", {}), ("good", {"team": "a"}))
    ]
    assert [each.code for each in replies] == [201, 201]
    log = tmp_path / "audit.log"
    log.write_text("".join(f"{cluster.client.server.event(each.audit_id)}\n" for each in replies))
    await cluster.unregister()
    found = await audit("--unjudged-from", log)
    assert names(found) == ["bad"]
    assert (found["objects"], found["skipped"]) == (2, {})


async def test_the_charts_role_is_enough(cluster, audit):
    """With the namespaces' labels, conditions that ask for an authorization, and policies in the cluster."""
    rendered = list(yaml.safe_load_all(RENDERED["everything"].read_text()))
    role, binding = (
        next(each for each in rendered if each["kind"] == kind and each["metadata"]["name"].endswith("-audit"))
        for kind in ("ClusterRole", "ClusterRoleBinding")
    )
    jane = {"kind": "User", "name": JANE, "apiGroup": "rbac.authorization.k8s.io"}
    for each in (role, binding | {"subjects": [jane]}):
        assert (await cluster.client.apply(each)).code in {200, 201}
    try:
        await define(cluster.client)
        assert (await cluster.create(pod())).code == 201
        may = {"name": "may", "expression": "!authorizer.group('').resource('pods').check('delete').allowed()"}
        tiers = {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}
        cluster.write(validating=[required_labels("team", matchConditions=[may], namespaceSelector=tiers)])
        found = await audit("--cluster-policies", user=JANE)
    finally:
        for each in (binding, role):
            await cluster.client.delete(each)
    assert found["complete"], found
    assert names(found) == ["p"]


async def test_policies_in_the_cluster_are_audited(cluster, audit):
    """Objects of the gateway's kinds, beside the files, which have their worker."""
    await create_config_maps(cluster, 2)
    cluster.write()
    await define(cluster.client)
    kinds = Kinds(cluster.client)
    try:
        await kinds.apply(validating(required_labels("team", rules=CONFIG_MAPS)))
        found = await audit("--cluster-policies")
    finally:
        await kinds.close()
    assert [each["violations"] for each in found["policies"]] == [2]
