"""The paths of registration entries: ``/mutate/ENTRY`` and ``/validate/ENTRY`` beside ``/mutate`` and ``/validate``."""

import base64
import json
from contextlib import asynccontextmanager

import pytest

from gateway.policies.model import Phase
from tests.integration.client import post
from tests.integration.running import configuration, policy, source
from tests.integration.workers import answer, deny, pb, scripted
from tests.traffic import recording

MUTATING = recording("pod-create.0m").body
VALIDATING = recording("pod-create.1v").body
SERVICES = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["services"]}


async def review(request, context):
    """Denies in the policy's name; a policy that marks adds a label of its name."""
    name = pb.ReviewRequest.FromString(request).call.policy
    if name.startswith("mark"):
        operation = {"op": "add", "path": f"/metadata/labels/{name}", "value": "yes"}
        return answer(allow=pb.Allow(json_patch=json.dumps([operation]).encode()))
    return deny(f"{name} says no")


@pytest.fixture
def served(gateway):
    """A gateway with two mutating entries, a set of two validating policies, and an isolated one."""

    @asynccontextmanager
    async def serve():
        async with scripted("mark-one", "mark-two", "first", "second", "alone", review=review) as target:
            text = source(
                workers={"scripted": target},
                mutating=[policy("mark-one"), policy("mark-two", failurePolicy="Ignore")],
                validating=[policy("first"), policy("second"), policy("alone", isolate=True, rules=[SERVICES])],
            )
            known = configuration(text)
            assert known.errors == ()
            async with gateway(known) as running:
                yield running

    return serve()


def entries(running, phase):
    return {entry.policies[0].policy: entry for entry in running.gateway._loaded.entries.of(phase)}


def marks(answered):
    return [operation["path"] for operation in json.loads(base64.b64decode(answered.response["patch"]))]


async def test_an_entry_is_judged_by_its_own_policies(served):
    """Each mutating entry changes what its policies change; the whole phase changes both."""
    async with served as running:
        paths = {name: entry.path for name, entry in entries(running, Phase.MUTATING).items()}
        assert len(paths) == 2
        for name, path in paths.items():
            answered = await running.send(post(MUTATING, f"{path}?timeout=10s"))
            assert marks(answered) == [f"/metadata/labels/{name}"]
        answered = await running.send(post(MUTATING, "/mutate?timeout=10s"))
        assert marks(answered) == ["/metadata/labels/mark-one", "/metadata/labels/mark-two"]


async def test_a_validating_entry_gathers_its_policies(served):
    """All members of a validating set refuse together; an isolated policy is not among them."""
    async with served as running:
        entry = entries(running, Phase.VALIDATING)["first"]
        answered = await running.send(post(VALIDATING, f"{entry.path}?timeout=10s"))
        message = answered.response["status"]["message"]
        assert [line.split(":")[0].split(".")[0] for line in message.splitlines()] == ["first", "second"]


async def test_an_isolated_policy_judges_whatever_comes_through_its_entry(served):
    """Its rules are the registration's, which the API server has checked: its path does not check them again."""
    async with served as running:
        entry = entries(running, Phase.VALIDATING)["alone"]
        assert entry.isolated
        answered = await running.send(post(VALIDATING, f"{entry.path}?timeout=10s"))
        assert answered.response["status"]["message"] == "alone says no"
        answered = await running.send(post(VALIDATING, "/validate?timeout=10s"))
        assert "alone" not in answered.response["status"]["message"]


async def test_the_registration_of_an_earlier_start_is_known_by_its_entries_names(served):
    """Another revision may have had other policies: rules are checked again, and the calls are reported."""
    async with served as running:
        entry = entries(running, Phase.VALIDATING)["first"]
        path = f"/validate/{entry.name}/01234567"
        answered = await running.send(post(VALIDATING, f"{path}?timeout=10s"))
        assert [line.split(".")[0] for line in answered.response["status"]["message"].splitlines()] == [
            "first",
            "second",
        ]
        labels = {"phase": "validating", "entry": entry.name}
        assert running.metric("outdated_entry_reviews_total", **labels) == 1
        alone = entries(running, Phase.VALIDATING)["alone"]
        answered = await running.send(post(VALIDATING, f"/validate/{alone.name}/01234567?timeout=10s"))
        assert answered.response["allowed"]
        _, ready = await running.admin("/readyz?verbose")
        assert f"/validate/{entry.name}" in ready
        assert "outdated registration" in ready


ODD = {
    "another name": "/{phase}/nobody.test.example.com",
    "no name": "/{phase}/",
    "two names": "/{phase}/{name}/{name}",
    "a revision of nothing": "/{phase}/nobody.test.example.com/01234567",
    "two revisions": "/{phase}/{name}/01234567/01234567",
    "a short revision": "/{phase}/{name}/0123456",
    "no such revision": "/{phase}/{name}/0123456G",
    "a revision of the phase": "/{phase}/01234567",
    "a slash behind": "/{phase}/{name}/",
    "two slashes": "/{phase}//{name}",
    "upper case": "/{phase}/{NAME}",
    "an encoded character": "/{phase}/{encoded}",
    "an encoded slash": "/{phase}%2F{name}",
    "dots": "/{phase}/../{phase}/{name}",
    "a blank": "/{phase}/{name}%20",
    "a zero byte": "/{phase}/{name}%00",
    "an encoded letter": "/{phase}/{name}%C3%A4",
    "very long": "/{phase}/{long}",
    "the other phase": "/validate/{name}",
    "parameters": "/{phase}/{name};a=b",
}


@pytest.mark.parametrize("name", ODD)
async def test_an_unknown_entry_is_a_404(served, name):
    """What is not exactly an entry's path gets no verdict, but one line that says what to do; the next request is
    judged.
    """
    async with served as running:
        entry = entries(running, Phase.MUTATING)["mark-one"].name
        encoded = f"%{ord(entry[0]):02X}{entry[1:]}"
        path = ODD[name].format(phase="mutate", name=entry, NAME=entry.upper(), encoded=encoded, long=5000 * "x")
        client = await running.client()
        answered = await client.send(post(MUTATING, f"{path}?timeout=10s"))
        assert (answered.status, answered.headers["content-type"]) == (404, "text/plain; charset=utf-8")
        assert answered.text.startswith("admission-gateway: nothing at ")
        assert answered.text.count("\n") == 1
        assert len(answered.text) < 500
        assert (await client.send(post(MUTATING, f"/mutate/{entry}?timeout=10s"))).status == 200
        assert running.metric("http_requests_rejected_total", reason="path") == 1


async def test_an_entry_takes_posts_only(served):
    """Another method on an entry's path is a 405, as on a phase's."""
    async with served as running:
        entry = entries(running, Phase.MUTATING)["mark-one"]
        answered = await running.send(post(b"", entry.path).replace(b"POST", b"GET", 1))
        assert (answered.status, answered.headers["allow"]) == (405, "POST")


async def test_entries_are_counted(served):
    """Each review through an entry counts under its name; other reviews do not."""
    async with served as running:
        entry = entries(running, Phase.VALIDATING)["first"].name
        labels = {"phase": "validating", "entry": entry}
        assert running.metric("entry_reviews_total", **labels, outcome="denied") == 0
        await running.send(post(VALIDATING, f"/validate/{entry}?timeout=10s"))
        await running.send(post(VALIDATING, "/validate?timeout=10s"))
        assert running.metric("entry_reviews_total", **labels, outcome="denied") == 1
        assert running.metric("reviews_total", phase="validating", outcome="denied") == 2
