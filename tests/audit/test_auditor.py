"""Wherever an audit is killed, it goes on as if it had not been: real workers, and lists from a script."""

from contextlib import asynccontextmanager

import msgspec
import pytest

from gateway.audit.api_reader import Page
from gateway.audit.auditor import Auditor, Pace
from gateway.audit.candidates import ListPart
from gateway.audit.state import AuditState
from gateway.audit.targets import CREATE, UPDATE, ServedResource, Target
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
async def auditing():
    """A function that audits pods, as CREATE and UPDATE, and config maps; and the worker."""
    worker = Worker()
    async with scripted("judge", review=worker) as target:
        known = configuration(source(workers={"scripted": target}, validating=[policy("judge", rules=RULES)]))
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

        try:
            yield audit, worker
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
    async with auditing() as (audit, worker):
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
    async with auditing() as (audit, _):
        assert sorted_(await audit(new(), Lists(restart=True))) == sorted_(await audit(new(), Lists()))


async def test_what_cannot_be_listed_hides_nothing_else():
    """The report says what is missing."""
    async with auditing() as (audit, _):
        results = await audit(new(), Lists(fails={"/api/v1/pods"}))
        assert results.objects == 10
        assert results.incomplete == ["pods v1: Kubernetes API: GET /api/v1/pods: no"]


async def test_workers_are_called_for_dry_runs():
    """So that they have no side effects; and with the operation of the rules."""
    async with auditing() as (audit, worker):
        await audit(new(), Lists(1))
    about = [
        (each["operation"], each["dryRun"], each["options"]["dryRun"], "oldObject" in each and bool(each["oldObject"]))
        for each in worker.documents
    ]
    assert sorted(about) == [("CREATE", True, ["All"], False)] * 2 + [("UPDATE", True, ["All"], True)]


async def test_an_object_of_too_many_values_is_reported():
    """As one that was not judged, and no other is kept from its verdict."""
    async with auditing() as (audit, _):
        lists = Lists(2)
        lists.objects[1]["data"] = [[]] * (MOST_VALUES // 2 + 1)
        results = await audit(new(), lists)
    errors = [each for each in results.findings if each.reason]
    assert {(each.name, each.reason) for each in errors} == {("o1", "REQUEST_TOO_LARGE")}
    assert {each.name for each in results.findings if not each.reason} == {"o0"}
