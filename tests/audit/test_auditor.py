"""Wherever an audit is killed, it goes on as if it had not been: real workers, and lists from a script."""

import asyncio
from contextlib import asynccontextmanager

import msgspec
import pytest

from gateway.audit.api_reader import Page
from gateway.audit.auditor import Auditor, Pace
from gateway.audit.candidates import GONE, ListPart, UnjudgedPart
from gateway.audit.state import AuditState
from gateway.audit.targets import CREATE, UPDATE, ServedResource, Target
from gateway.audit.unjudged_lines import ALL, EXTRA, GROUPS, OLD_OBJECT, Unjudged, UnjudgedObject
from gateway.cluster.errors import ApiError
from gateway.review.request import MOST_VALUES
from gateway.serving.loaded_configuration import LoadedConfiguration
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.worker_pool import WorkerPool
from tests.integration.running import configuration, policy, source
from tests.integration.workers import ALLOW, answer, deny, scripted

pytestmark = pytest.mark.integration

PODS = ServedResource(group="", version="v1", name="pods", kind="Pod", namespaced=True)
MAPS = ServedResource(group="", version="v1", name="configmaps", kind="ConfigMap", namespaced=True)
PAGE = 3
FORBIDDEN = ApiError("GET /api/v1/pods", 403, "Forbidden", "no")


class Lists:
    """What an API server lists: objects by number, in pages of three. ``restart``: the second page begins again."""

    def __init__(self, count=10, *, restart=False, fails=()):
        self.objects = [
            {"metadata": {"name": f"o{number}", "namespace": "n", "uid": str(number)}} for number in range(count)
        ]
        self.restart = restart
        self.fails = fails

    async def pages(self, path, token):
        if path in self.fails:
            raise FORBIDDEN
        start, restarted = int(token or 0), False
        while True:
            if self.restart and start:
                start, self.restart, restarted = 0, False, True
            end = start + PAGE
            following = str(end) if end < len(self.objects) else ""
            yield Page(items=self.objects[start:end], token=following, restarted=restarted)
            if not following:
                return
            start, restarted = end, False


class Worker:
    """Denies each third object, and fails for each fifth; it keeps what it was called with."""

    def __init__(self):
        self.documents = []

    async def __call__(self, request, context):
        document = msgspec.json.decode(pb.ReviewRequest.FromString(request).call.document)
        self.documents.append(document)
        number = int(document["object"]["metadata"]["uid"])
        if number % 5 == 4:
            return answer(failure=pb.Failure(message="no database"))
        return ALLOW if number % 3 else deny(f"no {number}")


@asynccontextmanager
async def auditing(**fields):
    """A function that audits pods, as CREATE and UPDATE, and config maps; the worker; a function that audits any part;
    and the policies, which have these fields.
    """
    worker = Worker()
    async with scripted("judge", review=worker) as target:
        judged = [policy("judge", **({"rules": RULES} | fields))]
        known = configuration(source(workers={"scripted": target}, validating=judged))
        assert known.errors == ()
        pool = WorkerPool()
        loaded = LoadedConfiguration(known, pool)
        await loaded.start(wait_seconds=60)
        judge = known.validating
        parts = [
            ListPart(target=Target(resource=PODS, policies={CREATE: judge, UPDATE: judge})),
            ListPart(target=Target(resource=MAPS, policies={CREATE: judge})),
        ]

        async def audit(state, lists, save=lambda _: None):
            auditor = Auditor(loaded, reader=lists, pace=Pace(0), state=state, save=save)
            return await auditor.run(parts)

        async def run(reader, part, pace=None, **fields):
            pace = pace or Pace(0)
            auditor = Auditor(loaded, reader=reader, pace=pace, state=new(), save=lambda _: None, **fields)
            return await auditor.run([part])

        try:
            yield audit, worker, run, judge
        finally:
            await loaded.close()
            await pool.close()


RULES = [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods", "configmaps"]}]


def new():
    return AuditState(audit="x", started="2026-01-01T00:00:00Z")


def sorted_(results):
    """The results, whatever order four objects at a time had."""
    return msgspec.structs.replace(
        results, findings=sorted(results.findings, key=lambda each: (each.place, each.operation))
    )


async def test_an_audit_that_is_killed_after_any_page_loses_and_repeats_nothing():
    """What was kept is gone on from: the results are the same, and no call is made twice."""
    async with auditing() as (audit, worker, _, _):
        whole = sorted_(await audit(new(), Lists()))
        count = whole.policies["test/judge.test.example.com"]
        # 10 objects, of which 0, 3, 6 are denied, and 4, 9 fail; once as pods twice, once as config maps.
        assert (whole.objects, count.passed, count.violations, count.errors) == (20, 15, 9, 6)
        assert {each.message for each in whole.findings if each.reason} == {
            "worker 'scripted' could not judge: no database"
        }
        made = len(worker.documents)
        kept = []
        await audit(new(), Lists(), lambda state: kept.append(msgspec.json.encode(state)))
        assert len(kept) == 8
        for text in kept:
            worker.documents.clear()
            state = msgspec.json.decode(text, type=AuditState)
            judged = sum(
                sum((each.passed, each.violations, each.errors))
                for part in (state.results, state.current)
                for each in part.policies.values()
            )
            assert sorted_(await audit(state, Lists())) == whole
            assert len(worker.documents) == made - judged


async def test_a_list_that_begins_again_is_counted_once():
    """As one that did not."""
    async with auditing() as (audit, _, _, _):
        assert sorted_(await audit(new(), Lists(restart=True))) == sorted_(await audit(new(), Lists()))


async def test_what_cannot_be_listed_hides_nothing_else():
    """The report says what is missing."""
    async with auditing() as (audit, _, _, _):
        results = await audit(new(), Lists(fails={"/api/v1/pods"}))
        assert results.objects == 10
        assert results.incomplete == ["pods v1: Kubernetes API: GET /api/v1/pods: no"]


async def test_workers_are_called_for_dry_runs():
    """So that they have no side effects; and with the operation of the rules."""
    async with auditing() as (audit, worker, _, _):
        await audit(new(), Lists(1))
    about = [
        (each["operation"], each["dryRun"], each["options"]["dryRun"], "oldObject" in each and bool(each["oldObject"]))
        for each in worker.documents
    ]
    assert sorted(about) == [("CREATE", True, ["All"], False)] * 2 + [("UPDATE", True, ["All"], True)]


class Stored:
    """An API server that has objects by path, and counts what is read."""

    def __init__(self, *names):
        self.paths = {
            f"/api/v1/namespaces/n/pods/o{name}": {
                "metadata": {"name": f"o{name}", "namespace": "n", "uid": str(name), "labels": {"a": "b"}}
            }
            for name in names
        }
        self.read = []

    async def object(self, path):
        self.read.append(path)
        return self.paths.get(path)


NAME = "test/judge.test.example.com"


def unjudged(number, operation="UPDATE", lost=(OLD_OBJECT,), policy=NAME):
    how = Unjudged(operation=operation, user={"username": "jane"}, lost=lost)
    about = {"group": "", "version": "v1", "resource": "pods", "namespace": "n", "name": f"o{number}"}
    return UnjudgedObject(**about, uid=str(number), policies={policy: how})


def part_of(judge, *objects):
    targets = [Target(resource=PODS, policies={CREATE: judge})]
    by_name = {each.qualified_name: each for each in judge}
    return UnjudgedPart(objects=objects, served={PODS.resource: PODS}, policies=by_name, targets=targets)


@pytest.mark.parametrize(
    ("fields", "unseen"),
    [
        ({}, False),
        ({"inputs": ["/object", "/oldObject/metadata/name"]}, False),
        ({"inputs": ["/object", "/oldObject"]}, False),
        ({"inputs": ["/object"], "matchConditions": [{"name": "x", "expression": "oldObject != null"}]}, False),
        ({"inputs": ["/object"], "objectSelector": {"matchLabels": {"a": "another"}}}, False),
        ({"inputs": ["/object"], "objectSelector": {"matchLabels": {"a": "b"}}}, True),
        ({"inputs": ["/object", "/userInfo"]}, True),
    ],
)
async def test_an_update_is_not_judged_again_by_a_policy_that_sees_the_old_object(fields, unseen):
    """Nothing has it: as its own old one, an object would pass each policy about changes."""
    async with auditing(**fields) as (_, worker, run, judge):
        results = await run(Stored(1), part_of(judge, unjudged(1)))
    count = results.policies[NAME]
    assert (count.judged, count.errors, len(worker.documents)) == ((1, 0, 1) if unseen else (0, 1, 0))
    if not unseen:
        (found,) = results.findings
        assert (found.operation, found.name, found.reason) == ("UPDATE", "o1", "")
        assert "needs oldObject" in found.message


@pytest.mark.parametrize(
    ("fields", "lost", "needs"),
    [
        ({}, (EXTRA,), EXTRA),
        ({"inputs": ["/object", "/userInfo/groups"]}, (EXTRA,), ""),
        ({"inputs": ["/object", "/userInfo/groups"]}, (GROUPS, EXTRA), GROUPS),
        ({"inputs": ["/object", "/userInfo/username"]}, (GROUPS, EXTRA), ""),
        (
            {
                "inputs": ["/object"],
                "matchConditions": [{"name": "x", "expression": "'g' in request.userInfo.groups"}],
            },
            (GROUPS,),
            GROUPS,
        ),
        (
            {
                "inputs": ["/object"],
                "matchConditions": [{"name": "x", "expression": "authorizer.path('/x').check('get').allowed()"}],
            },
            (EXTRA,),
            EXTRA,
        ),
    ],
)
async def test_what_the_log_has_not_of_the_user_is_not_made_up(fields, lost, needs):
    """A policy that sees it does not judge again."""
    async with auditing(**fields) as (_, worker, run, judge):
        results = await run(Stored(1), part_of(judge, unjudged(1, CREATE, lost)))
    assert [each.message.partition("needs ")[2].partition(",")[0] for each in results.findings] == (
        [needs] if needs else []
    )
    assert len(worker.documents) == (not needs)


async def test_a_policy_about_creates_only_is_not_asked_about_an_update():
    """When the log of the API server names none; as an UPDATE where its rules have that, and never as a CREATE."""
    for rules, documents in ((["CREATE"], []), (["CREATE", "UPDATE"], ["UPDATE"])):
        own = [{**RULES[0], "operations": rules}]
        async with auditing(inputs=["/object"], rules=own) as (_, worker, run, judge):
            await run(Stored(1), part_of(judge, unjudged(1, policy=ALL)))
        assert [each["operation"] for each in worker.documents] == documents


class Paced:
    """A pace that gives each turn a time of its own, and what was done until then."""

    def __init__(self, done):
        self.turns = []
        self._done = done

    def wait(self, now):
        self.turns.append(now)
        return float(len(self.turns))

    async def sleep(self, seconds):
        self.slept = [*getattr(self, "slept", []), (seconds, self._done())]
        for _ in range(3):
            await asyncio.sleep(0)


async def test_each_object_takes_its_turn():
    """As many turns as objects; no object is read or judged before its own is there."""
    async with auditing(inputs=["/object"]) as (_, worker, run, judge):
        stored = Stored(*range(120))
        paced = Paced(lambda: len(stored.read))
        objects = [unjudged(number, CREATE, ()) for number in range(130)]
        results = await run(stored, part_of(judge, *objects), pace=paced, now=lambda: 7.0, sleep=paced.sleep)
        assert (results.objects, results.skipped, len(stored.read)) == (120, {GONE: 10}, 130)
        assert len(paced.turns) == len(paced.slept) == 130
        assert set(paced.turns) == {7.0}
        assert [seconds for seconds, _ in paced.slept] == [float(number) for number in range(1, 131)]
        assert all(read < seconds for seconds, read in paced.slept)
        lists, paced = Lists(10), Paced(lambda: len(worker.documents))
        worker.documents.clear()
        listed = ListPart(target=Target(resource=PODS, policies={CREATE: judge}))
        await run(lists, listed, pace=paced, sleep=paced.sleep)
        assert len(paced.turns) == len(paced.slept) == 10
        assert all(calls < seconds for seconds, calls in paced.slept)


async def test_an_object_that_cannot_be_read_ends_the_part():
    """The report says so: the API server is away, or does not permit it."""

    class Forbidden(Stored):
        async def object(self, path):
            if path.endswith("o3"):
                raise FORBIDDEN
            return await super().object(path)

    async with auditing(inputs=["/object"]) as (_, _, run, judge):
        results = await run(
            Forbidden(*range(10)), part_of(judge, *(unjudged(number, CREATE, ()) for number in range(10)))
        )
    assert results.incomplete == ["unjudged admissions: Kubernetes API: GET /api/v1/pods: no"]


async def test_an_object_of_too_many_values_is_reported():
    """As one that was not judged, and no other is kept from its verdict."""
    async with auditing() as (audit, _, _, _):
        lists = Lists(2)
        lists.objects[1]["data"] = [[]] * (MOST_VALUES // 2 + 1)
        results = await audit(new(), lists)
    errors = [each for each in results.findings if each.reason]
    assert {(each.name, each.reason) for each in errors} == {("o1", "REQUEST_TOO_LARGE")}
    assert {each.name for each in results.findings if not each.reason} == {"o0"}
