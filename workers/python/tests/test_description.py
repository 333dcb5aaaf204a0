"""Describe, ValidateSettings and health, over a real connection."""

import grpc
import msgspec
import pytest
from grpc_health.v1 import health_pb2

from admission_worker import EVERYTHING, SettingsWarning, Worker
from admission_worker.proto.admission.worker.v1 import worker_pb2
from workers.python.tests.client import MUTATING, VALIDATING, Client, connected


class Settings(msgspec.Struct, forbid_unknown_fields=True):
    """Some settings."""

    n: int = 0


@pytest.fixture
def worker():
    made = Worker("labels", version="1.4.2")

    @made.validating(
        "all", settings=Settings, inputs=EVERYTHING, validate=lambda s: [SettingsWarning("old")] if s.n else None
    )
    def of_everything(request, settings):
        """Judges everything."""

    @made.mutating("some", inputs=["/object"], writes=["/metadata/labels"], version="7")
    def of_some(request):
        """Changes labels."""

    @made.mutating("none", inputs=[], writes=[])
    def of_nothing(request):
        pass

    @made.validating("silent")
    def says_nothing(request):
        pass

    return made


async def test_describe_returns_the_registrations(worker):
    """Names, versions, phases, claims and descriptions as they were registered."""
    async with connected(worker) as client:
        described = await client.describe()
    assert (described.worker, described.version) == ("labels", "1.4.2")
    policies = {policy.name: policy for policy in described.policies}
    assert list(policies) == ["all", "some", "none", "silent"]
    assert [list(policy.phases) for policy in described.policies] == [
        [VALIDATING],
        [MUTATING],
        [MUTATING],
        [VALIDATING],
    ]
    assert [policy.version for policy in described.policies] == ["", "7", "", ""]
    assert policies["all"].description == "Judges everything."


async def test_claims_of_nothing_everything_and_unset_differ(worker):
    """Unset, everything and pointers are three different messages, for inputs and writes."""
    async with connected(worker) as client:
        policies = {policy.name: policy for policy in (await client.describe()).policies}
    assert policies["all"].inputs.WhichOneof("claim") == "everything"
    assert policies["some"].inputs == worker_pb2.Claim(pointers=worker_pb2.Claim.Pointers(pointers=["/object"]))
    assert list(policies["some"].writes.pointers.pointers) == ["/metadata/labels"]
    assert policies["none"].inputs.WhichOneof("claim") == "pointers"
    assert list(policies["none"].inputs.pointers.pointers) == []
    assert not policies["silent"].HasField("inputs")
    assert not policies["silent"].HasField("writes")


async def test_describe_carries_schemas(worker):
    """Settings have a JSON Schema; without settings it is an object without members."""
    async with connected(worker) as client:
        policies = {
            policy.name: msgspec.json.decode(policy.settings_schema) for policy in (await client.describe()).policies
        }
    assert policies["all"]["$defs"]["Settings"]["properties"] == {"n": {"type": "integer", "default": 0}}
    assert policies["silent"]["$defs"]["NoSettings"]["additionalProperties"] is False


@pytest.mark.parametrize(
    ("policy", "settings", "errors", "warnings"),
    [
        ("all", {}, {}, []),
        ("all", {"n": 1}, {}, ["old"]),
        ("all", {"n": "1", "m": 1}, {"/n": "Expected `int`, got `str`", "/m": "Unknown member; known are: n"}, []),
        ("silent", {}, {}, []),
        ("silent", {"a": 1}, {"/a": "Unknown member; known are: none"}, []),
        ("unheard-of", {}, {"": "the worker holds no policy 'unheard-of'"}, []),
    ],
)
async def test_validate_settings_reports_all_errors(worker, policy, settings, errors, warnings):
    """The response has all errors and warnings of the settings; valid settings get none."""
    async with connected(worker) as client:
        answer = await client.validate(policy, settings)
    assert {error.pointer: error.message for error in answer.errors} == errors
    assert list(answer.warnings) == warnings


async def test_health_is_known_for_the_worker_and_for_nothing_else(worker):
    """Check reports the overall state under the empty name, and NOT_FOUND for unknown services."""
    async with connected(worker) as client:
        assert await client.health() == health_pb2.HealthCheckResponse.SERVING
        assert await client.health("admission.worker.v1.Worker") == health_pb2.HealthCheckResponse.SERVING
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await client.health("other")
    assert error.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_watch_reports_the_stop_and_then_ends(worker):
    """A Watch reports NOT_SERVING, and SERVICE_UNKNOWN for an unknown service."""
    serving = worker.serve()
    async with grpc.aio.insecure_channel(await serving.__aenter__()) as channel:
        client = Client(channel)
        known, unknown = client.watch(), client.watch("other")
        first = (await known.read()).status, (await unknown.read()).status
        await serving.__aexit__(None, None, None)
        statuses = [(await known.read()).status]
        assert await known.read() is grpc.aio.EOF
        assert await known.code() is grpc.StatusCode.OK
    assert first == (health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.SERVICE_UNKNOWN)
    assert statuses == [health_pb2.HealthCheckResponse.NOT_SERVING]
