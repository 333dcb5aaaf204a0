"""``/explain/UID``: found here or elsewhere, or what was searched; whatever the uid, and whoever does not answer."""

import asyncio
import http.client
import json
from urllib.parse import quote

import pytest

from gateway.engine.verdicts import Allow, Deny
from gateway.serving import replica_findings
from gateway.serving.admin import AdminListener
from gateway.serving.explain import AT_ONCE, EXPLAIN_SECONDS, PATH, ExplainPage, OtherFindings, explanation
from gateway.serving.limits import Limits
from gateway.telemetry.decision_memory import DecisionMemory
from gateway.telemetry.findings import Query, find
from gateway.telemetry.metrics import Metrics
from tests.world import decide, policy, request


class Gateway:
    """An admin listener with a page; ``others`` are the memories of other replicas."""

    def __init__(self, loop, *, reaches_replicas=True):
        self.loop = loop
        self.memory = DecisionMemory()
        self.others = {}
        self.why = ""
        self.copies = 1
        self.answers = 99
        self.asked = []
        self.full = asyncio.Event()
        self.released = asyncio.Event()
        self.released.set()
        page = ExplainPage(self.memory, [self.ask], reaches_replicas=reaches_replicas)
        self.listener = AdminListener(
            checks=dict, metrics=Metrics().written, pages={PATH: page}, limits=Limits(shutdown_seconds=0.05)
        )
        self.address = loop.run(self.listener.start("127.0.0.1", 0))

    async def ask(self, query):
        self.asked.append(query)
        if len(self.asked) == AT_ONCE:
            self.full.set()
        await self.released.wait()
        if len(self.asked) > self.answers:
            return OtherFindings(why="Redis did not answer")
        found = [find(memory, query, replica=name, process=name) for name, memory in self.others.items()]
        return OtherFindings(findings=found * self.copies, why=self.why)

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


def denied(uid, answer=None):
    """A decision."""
    return decide([policy("a")], {"a": answer or Deny(message="no tag")}, on=request(uid=uid, name="p"))[0]


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


def test_what_a_process_finds_is_shown_once(gateway):
    """A process of this pod answers the parent, and through Redis the first process, which asks for it."""
    there = gateway.others["gw-2"] = DecisionMemory()
    there.decided(denied("v"))
    gateway.copies = 2
    found = json.loads(gateway.get("/explain/v")[2])
    assert (len(found["decisions"]), found["searched"]["retained"]) == (1, 1)


def test_what_was_found_stays_if_the_second_query_fails(gateway):
    """The decision is there without what is related to it elsewhere, and with the reason."""
    gateway.others["gw-2"] = DecisionMemory()
    gateway.others["gw-2"].decided(denied("v"))
    gateway.answers = 1
    found = json.loads(gateway.get("/explain/v")[2])
    assert [each["uid"] for each in found["decisions"]] == ["v"]
    assert found["searched"]["why"] == "Redis did not answer"


def test_refused_decisions_come_first():
    """A client that sends one uid to both phases gets why its request was denied before all else."""
    memory = DecisionMemory()
    for answer in (Allow(), Deny(message="no tag"), Allow()):
        memory.decided(denied("u1", answer))
    decisions = explanation("u1", [find(memory, Query(uid="u1"))])["decisions"]
    assert [each["allowed"] for each in decisions] == [False, True, True]
    assert decisions[1]["time"] <= decisions[2]["time"]


@pytest.mark.parametrize("reaches_replicas", [True, False])
def test_other_replicas_that_were_not_asked_are_in_the_answer(loop, reaches_replicas):
    """Without Redis, another replica may have it as well as the decision log."""
    gateway = Gateway(loop, reaches_replicas=reaches_replicas)
    try:
        status, _, body = gateway.get("/explain/nope")
    finally:
        loop.run(gateway.listener.stop())
    assert (status, "only this gateway was asked: without --redis" in body) == (404, not reaches_replicas)


def test_the_time_of_an_explanation_is_that_of_its_queries():
    """The parent of several processes waits for so long: for two queries, with a second to spare."""
    each = replica_findings.REPLY_SECONDS + replica_findings.ANSWER_SECONDS
    assert 2 * each < EXPLAIN_SECONDS


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
