"""With --cluster-policies, a gateway serves the objects of its kinds in the cluster."""

import json
import ssl

import aiohttp
import pytest

from tests.caching.servers import free_port
from tests.e2e.api_server import JANE
from tests.e2e.client import TABLE, eventually
from tests.e2e.cluster import HOST
from tests.e2e.kinds import Kinds, define, validating, worker
from tests.e2e.policies import denies, judge
from tests.e2e.worker_process import WorkerProcess
from tests.integration.running import until
from tests.links.proxy import Fault, FaultProxy
from tests.traffic import recording

REVIEW = recording("pod-create.1v")


@pytest.fixture
async def kinds(cluster):
    """Makes objects."""
    await define(cluster.client)
    kinds = Kinds(cluster.client)
    yield kinds
    await kinds.close()


@pytest.fixture
def flags(api_server, tmp_path):
    return ("--kubeconfig", api_server.kubeconfig(tmp_path), "--cluster-policies")


class Caller:
    """Calls gateways directly, as kube-apiserver does."""

    def __init__(self, session, ca_file):
        self._session = session
        self._trust = ssl.create_default_context(cafile=ca_file)

    async def __call__(self, gateway):
        """What it decides: "allowed", the message, or the HTTP status."""
        url = f"https://localhost:{gateway.port}/validate?timeout=10s"
        headers = {"Content-Type": "application/json"}
        sent = self._session.post(url, data=REVIEW.body, headers=headers, ssl=self._trust, server_hostname=HOST)
        async with sent as response:
            if response.status != 200:
                return response.status
            decided = (await response.json())["response"]
            return "allowed" if decided["allowed"] else decided["status"]["message"]


@pytest.fixture
async def call(ca_file):
    async with aiohttp.ClientSession() as session:
        yield Caller(session, ca_file)


@pytest.fixture
def said(call):
    """Wait until a gateway says this."""

    async def wait(gateway, wanted):
        async def found():
            return (await call(gateway)) == wanted

        await eventually(found)

    return wait


def is_ready(gateway):
    return gateway.page("/readyz")[0] == 200


@pytest.fixture
async def started(cluster, flags):
    """A gateway with the harness' workers in its files, once it is ready."""

    async def start(*more):
        cluster.write()
        gateway = await cluster.start(*(more or flags))
        await until(lambda: is_ready(gateway))
        return gateway

    return start


async def test_objects_are_served_as_they_are_applied_changed_and_deleted(serve, kinds, flags, said):
    """Without any file: a Worker that is reached over TCP, and a policy."""
    configured = WorkerProcess(f"127.0.0.1:{free_port()}", "tests/e2e/configured.py").ready()
    try:
        own = worker({"grpc": {"target": configured.target}}, name="configured")
        await kinds.apply(own, validating(denies("first")))
        gateway = serve(*flags, "--drain", 0).ready()
        await said(gateway, "first")
        await kinds.apply(validating(denies("second")))
        await said(gateway, "second")
        await kinds.delete(validating())
        await said(gateway, "allowed")
        await kinds.delete(own)
        assert gateway.internal_errors() == []
    finally:
        configured.stop()


async def test_nothing_is_served_until_all_objects_are_known(cluster, kinds, api_server, tmp_path, call, said):
    """Reviews get 503, and /readyz says why; once the API server is back, the gateway serves."""
    await kinds.apply(validating(denies("no")))
    cluster.write()
    host, port = api_server.url.removeprefix("https://").split(":")
    async with FaultProxy(host, int(port)) as proxy:
        file = api_server.kubeconfig(tmp_path)
        file.write_text(file.read_text().replace(f":{port}", f":{proxy.port}"))
        await proxy.switch(Fault.REFUSED)
        gateway = await cluster.start("--kubeconfig", file, "--cluster-policies")
        await until(lambda: "GET /apis/admission-gateway.dev/v1alpha1/" in gateway.page("/readyz")[1])
        assert await call(gateway) == 503
        await proxy.switch(Fault.NONE)
        await said(gateway, "no")
        await proxy.switch(Fault.REFUSED)
        await until(lambda: "may have changed: Kubernetes API" in gateway.page("/readyz?verbose")[1])
        assert await call(gateway) == "no"
        assert is_ready(gateway)
        assert gateway.metric("cluster_watch_open") == 0
        await proxy.switch(Fault.NONE)


async def test_a_denial_ends_with_whom_to_ask_and_what_to_read(kinds, cluster, started, said):
    """And with the review's uid; the definition refuses what is not a URL."""
    whom = {"contact": "platform team, #platform", "documentation": "https://example.com/labels"}
    await kinds.apply(validating(denies("no", **whom)))
    uid = json.loads(REVIEW.body)["request"]["uid"]
    gateway = await started()
    await said(
        gateway, f"no (contact: platform team, #platform; documentation: https://example.com/labels; uid: {uid})"
    )
    for wrong in ({"contact": "a\nb"}, {"documentation": "example.com"}):
        reply = await cluster.client.apply(validating(denies("no", **wrong)))
        assert (reply.code, "should match" in reply.message) == (422, True)


async def test_an_invalid_object_holds_back_no_other(kinds, started, said, call):
    """It keeps its last good version, and a new one is a failure; the others are loaded."""
    await kinds.apply(validating(denies("first"), name="a"))
    gateway = await started()
    await said(gateway, "first")
    invalid = denies("second", matchConditions=[{"name": "c", "expression": "no CEL"}])
    await kinds.apply(validating(invalid, name="a"), validating(denies("third", name="other"), name="b"))
    await said(gateway, "judge.test.example.com: first\nother.test.example.com: third")
    await kinds.delete(validating(name="a"), validating(name="b"))
    await said(gateway, "allowed")
    await kinds.apply(validating(judge() | {"worker": "nobody"}, name="c"))

    async def failed():
        message = str(await call(gateway))
        return message.startswith("CONFIGURATION: ") and 'policies[0].worker: Not found: "nobody"' in message

    await eventually(failed)


async def test_a_worker_may_come_after_its_policies(kinds, started, said, call, status):
    """A policy refers to nothing until its Worker is applied; its status says so."""
    obj = validating(denies("no") | {"worker": "late"})
    await kinds.apply(obj)
    gateway = await started()
    assert "CONFIGURATION" in await call(gateway)
    found = await status(obj, ("False", "Invalid"), ("False", "Invalid"))
    assert found["conditions"][0]["message"].startswith('policies[0].worker: Not found: "late"')
    configured = WorkerProcess(f"127.0.0.1:{free_port()}", "tests/e2e/configured.py").ready()
    try:
        await kinds.apply(worker({"grpc": {"target": configured.target}}, name="late"))
        await said(gateway, "no")
        await status(obj, *GOOD)
    finally:
        configured.stop()


async def test_a_file_wins_over_an_object_of_its_name(cluster, kinds, flags, said):
    """The object is not loaded, and /readyz says so; the others are."""
    cluster.write(validating=[denies("file")])
    await kinds.apply(validating(denies("object"), name="test"), validating(denies("other", name="other"), name="u"))
    gateway = await cluster.start(*flags)
    await said(gateway, "judge.test.example.com: file\nother.test.example.com: other")
    _, report = gateway.page("/readyz?verbose")
    assert (
        "ValidatingPolicyConfiguration/test is not loaded as it is in the cluster: metadata.name: Duplicate" in report
    )


async def test_files_that_lack_a_worker_are_loaded_once_it_is_in_the_cluster(cluster, kinds, flags, said, serve):
    """A changed file with an error is all or nothing, until a change in the cluster removes the error."""
    cluster.write()
    # Not by the cluster, which would find the error in its log.
    gateway = serve("--policies", cluster.policies, *flags, "--reload-interval", 0.02, "--drain", 0).ready()
    await until(lambda: is_ready(gateway))
    configured = WorkerProcess(f"127.0.0.1:{free_port()}", "tests/e2e/configured.py").ready()
    try:
        cluster.write(validating=[denies("no") | {"worker": "late"}])
        await until(lambda: gateway.metric("configuration_reloads_total", result="invalid") == 1)
        await said(gateway, "allowed")
        await kinds.apply(worker({"grpc": {"target": configured.target}}, name="late"))
        await said(gateway, "no")
        assert gateway.metric("configuration_last_reload_successful") == 1
    finally:
        configured.stop()


async def test_a_missing_permission_is_named(cluster, kinds, api_server, tmp_path):
    """Verb, resource and the next step stand on /readyz, and nothing is served."""
    cluster.write()
    gateway = await cluster.start("--kubeconfig", api_server.kubeconfig(tmp_path, JANE), "--cluster-policies")
    denied = 'cannot list resource "workers" in API group "admission-gateway.dev"'
    await until(lambda: denied in gateway.page("/readyz")[1])
    code, report = gateway.page("/readyz")
    assert code == 503
    assert "grant it to the gateway's service account" in report


@pytest.fixture
def status(kinds):
    """Wait until the status of an object has these conditions: (status, reason) of Accepted and of Enforced."""

    async def wait(obj, accepted, enforced):
        async def found():
            stored = (await kinds.client.get(obj)).body
            conditions = {each["type"]: each for each in stored.get("status", {}).get("conditions", [])}
            pairs = [(each["status"], each["reason"]) for each in conditions.values()]
            current = all(
                each["observedGeneration"] == stored["metadata"]["generation"] for each in conditions.values()
            )
            return stored["status"] if current and pairs == [accepted, enforced] else None

        return await eventually(found)

    return wait


GOOD = (("True", "Accepted"), ("True", "Enforced"))


async def test_the_status_is_the_truth_of_each_replica(kinds, started, status):
    """Each replica reports which generation it uses; the conditions are those of all, and name who differs."""
    obj = validating(denies("first"))
    await kinds.apply(obj)
    replicas = [await started() for _ in range(2)]

    async def complete():
        return len((await status(obj, *GOOD))["replicas"]) == 2

    await eventually(complete)
    found = await status(obj, *GOOD)
    assert [each["enforcedGeneration"] for each in found["replicas"]] == [1, 1]
    assert sorted(each["name"].rpartition(":")[2] for each in found["replicas"]) == sorted(
        str(gateway.port) for gateway in replicas
    )
    invalid = validating(denies("second", matchConditions=[{"name": "c", "expression": "1 +"}]))
    await kinds.apply(invalid)

    async def both():
        found = await status(obj, ("False", "Invalid"), ("False", "Invalid"))
        return found if found["conditions"][1]["message"].startswith("2 of 2 replicas do not use it; ") else None

    found = await eventually(both)
    message = found["conditions"][0]["message"]
    assert message.startswith("policies[0].matchConditions[0].expression: Invalid value: ")
    assert (await kinds.client.get(obj)).body["metadata"]["generation"] == found["observedGeneration"] == 2
    await kinds.apply(obj)
    await status(obj, *GOOD)
    # One that stops removes itself, and is not waited for.
    replicas[0].terminate()

    async def alone():
        return len((await kinds.client.get(obj)).body["status"]["replicas"]) == 1

    await eventually(alone)
    await kinds.apply(validating(denies("third")))
    await status(obj, *GOOD)


async def test_a_replica_that_is_killed_is_named(kinds, started, status):
    """An object that it does not report is not enforced by all, as far as anybody knows."""
    obj = validating(denies("first"))
    await kinds.apply(obj)
    killed, _ = await started(), await started()

    async def complete():
        return len((await status(obj, *GOOD))["replicas"]) == 2

    await eventually(complete)
    killed.process.kill()
    await kinds.apply(validating(denies("second")))
    found = await status(obj, ("Unknown", "Pending"), ("False", "Pending"))
    assert found["observedGeneration"] == 1
    assert f":{killed.port}" in found["conditions"][1]["message"]


async def test_a_worker_that_does_not_answer_is_in_the_status(kinds, started, status):
    """The object is accepted, and not enforced."""
    obj = validating(denies("no") | {"worker": "away"})
    await kinds.apply(worker({"grpc": {"target": f"127.0.0.1:{free_port()}"}}, name="away"), obj)
    await started()
    found = await status(obj, ("True", "Accepted"), ("False", "Unavailable"))
    assert "judge.test.example.com" in found["conditions"][1]["message"]


async def test_kubectl_shows_the_status(kinds, started, status):
    """In the columns of the kind, by its short name."""
    obj = validating(denies("no") | {"worker": "late"})
    await kinds.apply(obj)
    await started()
    found = await status(obj, ("False", "Invalid"), ("False", "Invalid"))
    path = "/apis/admission-gateway.dev/v1alpha1"
    table = (await kinds.client.send("GET", f"{path}/validatingpolicyconfigurations", accept=TABLE)).body
    columns = [each["name"] for each in table["columnDefinitions"]]
    (row,) = [dict(zip(columns, each["cells"], strict=True)) for each in table["rows"]]
    assert row.pop("Age")
    message = found["conditions"][1]["message"]
    assert row == {"Name": "team-a", "Accepted": "False", "Enforced": "False", "Reason": "Invalid", "Message": message}
    served = (await kinds.client.send("GET", path)).body["resources"]
    names = {each["name"]: each["shortNames"] for each in served if "/" not in each["name"]}
    assert all(names.values())
    assert len(names) == 3


async def test_a_status_loads_nothing(kinds, started, status):
    """Neither its own nor metadata of others: they are no change of the configuration."""
    obj = validating(denies("no"))
    await kinds.apply(obj)
    gateway = await started()
    await status(obj, *GOOD)
    loaded = gateway.metric("configuration_reloads_total", result="loaded")
    await kinds.apply(obj | {"metadata": obj["metadata"] | {"labels": {"team": "a"}}})
    await kinds.apply(validating(denies("other", name="other"), name="b"))
    await status(validating(name="b"), *GOOD)
    assert gateway.metric("configuration_reloads_total", result="loaded") == loaded + 1
