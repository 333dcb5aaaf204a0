"""The settings of a worker's policies are put to it side by side, and each text once."""

import asyncio

import pytest

from gateway.engine.plan import Described
from gateway.policies.model import Phase
from gateway.policies.workers.targets import GrpcTarget, Worker
from gateway.transports.description_validator import AT_ONCE, DescriptionValidator
from gateway.transports.messages import PHASES
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.worker_channel import WorkerError
from tests.world import policy


class Judge:
    """Judges settings as slowly as the loop lets others go on; refuses none, and breaks at one text."""

    def __init__(self, breaks_at=None):
        self.put = []
        self.open = self.most = 0
        self.breaks_at = breaks_at

    async def validate_settings(self, policy, settings):
        self.put.append(settings)
        self.open += 1
        self.most = max(self.most, self.open)
        await asyncio.sleep(0)
        self.open -= 1
        if settings == self.breaks_at:
            raise WorkerError("gone")
        return pb.ValidateSettingsResponse()


def describing(judge):
    description = pb.DescribeResponse(
        version="1", policies=[pb.PolicyDescription(name="judge", phases=[PHASES[Phase.MUTATING]])]
    )
    worker = Worker(name="one", grpc=GrpcTarget(target="unix:one"))
    return DescriptionValidator(judge, worker, description, 1000)


def policies(count, texts):
    return [[policy(f"p{n}", policy="judge", worker="one", settings=b'{"n":%d}' % (n % texts))] for n in range(count)]


async def test_settings_are_put_side_by_side_and_each_text_once():
    """Of a hundred policies with forty texts, forty are put, as many at once as may be, and all have a standing."""
    judge = Judge()
    found = await describing(judge).availabilities(policies(100, 40))
    assert all(isinstance(each, Described) for each in found)
    assert len(found) == 100
    assert sorted(judge.put) == sorted(set(judge.put))
    assert len(judge.put) == 40
    assert judge.most == AT_ONCE


async def test_the_standings_are_in_the_policies_order():
    """Whichever policy is called first."""
    wanted = policies(40, 40)
    wanted[7] = [policy("unknown", policy="nobody", worker="one")]
    found = await describing(Judge()).availabilities(wanted)
    assert [n for n, each in enumerate(found) if not isinstance(each, Described)] == [7]


async def test_a_worker_that_breaks_is_not_called_on():
    """Its failure is reported, and it gets no more settings."""
    judge = Judge(breaks_at=b'{"n":20}')
    with pytest.raises(WorkerError, match="gone"):
        await describing(judge).availabilities(policies(100, 100))
    await asyncio.sleep(0)
    assert len(judge.put) < 100
    assert judge.open <= AT_ONCE


class Warns(Judge):
    """It warns of everything."""

    async def validate_settings(self, policy, settings):
        return pb.ValidateSettingsResponse(warnings=["old"])


async def test_a_warning_names_one_of_equal_policies_and_how_many_more_there_are(log):
    """10,000 policies with the same settings are one line."""
    alike = [policy(name, policy="judge", worker="one") for name in "abc"]
    await describing(Warns()).availabilities([alike, [policy("d", policy="judge", worker="one", settings=b"[]")]])
    warnings = [(entry["policy"], entry["warning"], entry.get("more_policies")) for entry in log]
    assert warnings == [("test/a.test.example.com", "old", 2), ("test/d.test.example.com", "old", None)]
