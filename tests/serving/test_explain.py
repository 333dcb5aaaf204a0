"""``/explain/UID``: found here or elsewhere, or what was searched; whatever the uid, and whoever does not answer."""

import asyncio
import http.client
import json
from urllib.parse import quote

import pytest

from gateway.engine.verdicts import Deny
from gateway.serving.admin import AdminListener
from gateway.serving.explain import AT_ONCE, PATH, ExplainPage, OtherFindings
from gateway.serving.limits import Limits
from gateway.telemetry.decision_memory import DecisionMemory
from gateway.telemetry.findings import find
from gateway.telemetry.metrics import Metrics
from tests.world import decide, policy, request


class Gateway:
    """An admin listener with a page; ``others`` are the memories of other replicas."""

    def __init__(self, loop):
        self.loop = loop
        self.memory = DecisionMemory()
        self.others = {}
        self.why = ""
        self.asked = []
        self.full = asyncio.Event()
        self.released = asyncio.Event()
        self.released.set()
        page = ExplainPage(self.memory, [self.ask])
        self.listener = AdminListener(
            checks=dict, metrics=Metrics().written, pages={PATH: page}, limits=Limits(shutdown_seconds=0.05)
        )
        self.address = loop.run(self.listener.start("127.0.0.1", 0))

    async def ask(self, query):
        self.asked.append(query)
        if len(self.asked) == AT_ONCE:
            self.full.set()
        await self.released.wait()
        return OtherFindings(
            findings=[find(memory, query, replica=name) for name, memory in self.others.items()], why=self.why
        )

    def get(self, target, method="GET", headers=None):
        client = http.client.HTTPConnection(*self.address, timeout=20)
        try:
            client.request(method, target, headers=headers or {})
            response = client.getresponse()
            return response.status, response.headers["Content-Type"], response.read().decode()
        finally:
            client.close()


@pytest.fixture
def gateway(loop):
    made = Gateway(loop)
    yield made
    loop.run(made.listener.stop())


def denied(uid):
    """A decision."""
    return decide([policy("a")], {"a": Deny(message="no tag")}, on=request(uid=uid, name="p"))[0]


def test_a_retained_decision_is_explained(gateway):
    """As JSON, or as text for those who ask for it."""
    gateway.memory.decided(denied("u1"))
    status, kind, body = gateway.get("/explain/u1")
    assert (status, kind) == (200, "application/json")
    found = json.loads(body)
    assert (found["kind"], [each["uid"] for each in found["decisions"]]) == ("Explanation", ["u1"])
    assert found["searched"]["retained"] == 1
    for target, headers in (("/explain/u1?o=text", {}), ("/explain/u1", {"Accept": "text/plain"})):
        status, kind, body = gateway.get(target, headers=headers)
        assert (status, kind) == (200, "text/plain; charset=utf-8")
        assert "test/a.test.example.com denied it: no tag\n" in body
    assert gateway.get("/explain/u1", headers={"Accept": "application/json, text/plain"})[1] == "application/json"


def test_a_decision_of_another_replica_is_found(gateway):
    """And then what is related to it, here."""
    there = gateway.others["gw-2"] = DecisionMemory()
    there.decided(denied("v"))
    gateway.memory.decided(denied("m"))
    found = json.loads(gateway.get("/explain/v")[2])
    assert [(each["uid"], each["replica"]) for each in found["decisions"]] == [("v", "gw-2")]
    assert [each["uid"] for each in found["related"]] == ["m"]
    assert len(found["searched"]["replicas"]) == 2
    assert [each.subject is not None for each in gateway.asked] == [False, True]


def test_what_is_not_found_says_what_was_searched(gateway):
    """How many decisions, since when, and who may have it."""
    gateway.memory.decided(denied("u1"))
    gateway.why = "Redis cannot be used"
    status, kind, body = gateway.get("/explain/nope")
    assert (status, kind) == (404, "text/plain; charset=utf-8")
    assert 'no decision of review "nope" is retained; ' in body
    assert "retained 1 decisions, all refused ones since 20" in body
    assert "others may have it: Redis cannot be used" in body


@pytest.mark.parametrize(
    ("uid", "status"),
    [("", 400), ("u" * 257, 400), ("a\nb", 400), ("\x00", 400), ("..", 404), ("a/b", 404), ("%", 404), ("ü" * 99, 404)],
)
def test_any_uid_has_an_answer(gateway, uid, status):
    """One line, in ASCII, that does not repeat it without end."""
    observed, _, body = gateway.get(f"/explain/{quote(uid, safe='')}")
    assert observed == status
    assert body.count("\n") == 1
    assert len(body) < 1_000
    assert body.isascii()


def test_it_is_read_only(gateway):
    """405 for another method; the page without a uid is no page."""
    assert gateway.get("/explain/u1", "POST")[0] == 405
    assert gateway.get("/explain")[0] == 404
    assert f"there are /livez, /readyz, /metrics, {PATH}" in gateway.get("/nothing")[2]


def test_too_many_at_once_are_refused(gateway, loop):
    """Each renders documents, and waits for others."""
    gateway.released.clear()

    async def many():
        waiting = [asyncio.create_task(asyncio.to_thread(gateway.get, "/explain/u")) for _ in range(AT_ONCE)]
        await gateway.full.wait()
        refused = await asyncio.to_thread(gateway.get, "/explain/u")
        gateway.released.set()
        return refused, await asyncio.gather(*waiting)

    refused, others = loop.run(many())
    assert refused[0] == 429
    assert {each[0] for each in others} == {404}
