"""The same hundred reviews, the same decisions, whether the policies are called over gRPC, over a queue or as webhooks.

Through a real gateway each time, with Python's sample policies behind it. Over the queue it is the same worker, and
those of the other languages, behind a bridge and a real redis-server. As webhooks, each policy is a server's path of
its own, with its settings built in; of the configuration, only how the worker is reached and ``policy`` differ.
"""

import asyncio
import base64
import json
import tempfile
from contextlib import ExitStack

import pytest

from tests.integration.client import Client
from tests.integration.redis_process import RedisProcess
from tests.integration.running import policy, source
from tests.webhooks.front import front
from tests.webhooks.native import text
from tests.webhooks.queue_processes import bridge, key_file, sample_worker
from tests.workers.commands import SAMPLES, command, languages
from tests.workers.hundred import COUNT, MUTATING, VALIDATING, assert_same, reviews
from tests.workers.running import EVERYTHING, WORKER_STARTUP_TIMEOUT

pytestmark = pytest.mark.workers

STREAM = "admission:samples"


@pytest.fixture
def processes():
    """What is started for a test, stopped at its end."""
    with ExitStack() as stack:
        yield stack


def _served(serving, trust, folder, workers, policies, *arguments):
    """The bytes of each AdmissionReview response."""
    described = [
        {"apiVersion": "admission-gateway.dev/v1alpha1", "kind": "Worker", "metadata": {"name": name}, "spec": spec}
        for name, spec in workers.items()
    ]
    (folder / "workers.yaml").write_text(text(*described))
    (folder / "policies.yaml").write_text(
        source(workers={}, mutating=policies(MUTATING), validating=policies(VALIDATING))
    )
    process = serving("--policies", folder, "--worker-startup-timeout", WORKER_STARTUP_TIMEOUT, *arguments).ready()
    try:
        with Client(process.port, trust) as client:
            answers = [client.send(request) for request in reviews()]
    finally:
        process.stop()
    assert process.internal_errors() == []
    assert {answered.status for answered in answers} == {200}
    return [answered.body for answered in answers]


def _of_one_worker(policies):
    """All of them are policies of one worker, with their settings."""
    return [
        policy(name, worker="judge", policy=of, rules=EVERYTHING, settings=settings, timeoutSeconds=10)
        for name, (of, settings) in policies.items()
    ]


def _of_webhooks(policies):
    """Each calls a webhook of its own, which has no policies and takes no settings."""
    return [policy(name, worker=name, rules=EVERYTHING, timeoutSeconds=10) for name in policies]


@pytest.fixture(scope="module")
def by_grpc(serving, trust, tmp_path_factory):
    """The decisions with the worker that the gateway starts itself and calls over gRPC."""
    workers = {"judge": {"grpc": {"command": command(SAMPLES, "python")}}}
    return _served(serving, trust, tmp_path_factory.mktemp("grpc"), workers, _of_one_worker)


def _sorted(settings):
    """Settings as workers get them, which judge in their order: in the order of their names."""
    return json.loads(json.dumps(settings, sort_keys=True))


def _failing(decisions):
    return [body for body in decisions if b"InternalError" in body or b"failed-open" in body]


def test_the_reviews_are_decided_over_grpc(by_grpc):
    """There are a hundred, nothing fails, and some are denied, some changed, some warned about."""
    responses = [json.loads(body)["response"] for body in by_grpc]
    assert len(responses) == COUNT
    assert _failing(by_grpc) == []
    assert len([each for each in responses if not each["allowed"]]) >= 20
    assert len([each for each in responses if json.loads(base64.b64decode(each.get("patch", "W10=")))]) >= 20
    assert [each for each in responses if "warnings" in each]


@pytest.mark.parametrize("language", languages(SAMPLES))
def test_over_a_queue_they_are_decided_the_same(language, by_grpc, serving, trust, processes, tmp_path):
    """Responses are equal byte for byte, whatever the language of the worker behind the bridge."""
    folder = processes.enter_context(tempfile.TemporaryDirectory())
    redis = asyncio.run(RedisProcess(folder).start())
    processes.callback(redis.stop)
    target = f"unix:{folder}/worker.sock"
    key = key_file(tmp_path)
    for started in (sample_worker(language, target), bridge(STREAM, key, redis.url, target)):
        processes.callback(started.stop)
    policies = tmp_path / "policies"
    policies.mkdir()
    workers = {"judge": {"queue": {"stream": STREAM, "keyFile": str(key)}}}
    # A gateway that has stood still itself is not to find that Redis has.
    arguments = ("--queue-redis", redis.url, "--limit-queue-redis-seconds", 8)
    decisions = _served(serving, trust, policies, workers, _of_one_worker, *arguments)
    assert_same(by_grpc, decisions, f"queue, {language}")


def test_as_webhooks_they_are_decided_the_same(by_grpc, serving, trust, processes, authority, webhook_pair, tmp_path):
    """Allowed, status with its causes, patch, warnings, audit annotations: byte for byte."""
    routes = {f"/{name}": (of, _sorted(settings)) for name, (of, settings) in (MUTATING | VALIDATING).items()}
    port = processes.enter_context(front(routes, webhook_pair))
    bundle = base64.b64encode(authority.pem).decode()
    workers = {
        name: {"webhook": {"url": f"https://127.0.0.1:{port}/{name}", "caBundle": bundle}}
        for name in (*MUTATING, *VALIDATING)
    }
    decisions = _served(serving, trust, tmp_path, workers, _of_webhooks)
    assert_same(by_grpc, decisions, "webhook")
