"""The API server hangs up: it closes the connection, and the work for it ends."""

import asyncio
import json

import pytest

from gateway.engine.decision import ANSWERED, Outcome
from gateway.telemetry.log_level import LogLevel
from gateway.telemetry.traces.settings import trace_settings
from tests.integration.client import message, post
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import configuration, policy, source, until
from tests.integration.workers import Gate, Hanging, deny, scripted
from tests.otlp_receiver import otlp_grpc
from tests.traffic import recording

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
MUTATING = recording("pod-create.0m")
VALIDATING = recording("pod-create.1v")


@pytest.mark.parametrize("recorded", [MUTATING, VALIDATING], ids=["mutating", "validating"])
async def test_a_hang_up_cancels_the_workers_call(gateway, recorded):
    """When its connection closes the worker's call is cancelled, and the review counts as canceled, not as answered."""
    review = Hanging()
    async with scripted("judge", review=review) as target:
        known = configuration(source(workers={"scripted": target}, **{recorded.phase: [policy("judge")]}))
        async with gateway(known) as served:
            client = await served.client()
            client.sendall(message(recorded))
            async with asyncio.timeout(WAIT_SECONDS):
                await review.called.wait()
                await client.close()
                await review.cancelled.wait()
            await until(lambda: served.metric("reviews_canceled_total", phase=recorded.phase) == 1)
            (decision,) = served.decisions.values()
            assert (decision.outcome, decision.calls[0].answer) == (Outcome.CANCELED, None)
            assert all(served.metric("reviews_total", phase=recorded.phase, outcome=each) == 0 for each in ANSWERED)
            assert served.gateway.front.load.reviews == served.gateway.front.load.body_bytes == 0


@pytest.mark.parametrize(("flags", "slow_seconds"), [("01", 60.0), ("00", 0.0)], ids=["sampled", "slow"])
async def test_a_canceled_review_is_found(gateway, tmp_path, flags, slow_seconds):
    """It has a span, which the context that its worker got is a child of, a line in the decision log, and ``/explain``
    says for which policy it waited.
    """
    contexts = []
    review = Hanging()

    async def called(request, context):
        contexts.append(dict(context.invocation_metadata())["traceparent"])
        return await review(request, context)

    uid, log = json.loads(VALIDATING.body)["request"]["uid"], tmp_path / "decisions.log"
    with otlp_grpc() as (url, received):
        environment = {"OTEL_BSP_SCHEDULE_DELAY": "20", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
        traces = trace_settings(environment, endpoint=url, slow_seconds=slow_seconds)
        settings = {"traces": traces, "decision_log": str(log), "decision_log_level": LogLevel.ALL}
        async with scripted("judge", review=called) as target:
            known = configuration(source(workers={"scripted": target}, validating=[policy("judge")]))
            async with gateway(known, **settings) as served:
                client = await served.client()
                parent = ("traceparent", f"00-{TRACE}-{PARENT}-{flags}")
                client.sendall(post(VALIDATING.body, "/validate?timeout=10s", parent))
                async with asyncio.timeout(WAIT_SECONDS):
                    await review.called.wait()
                    await client.close()
                await until(lambda: served.metric("trace_spans_total", result="exported") > 0)
                await until(lambda: log.exists() and log.read_text().endswith("\n"))
                status, text = await served.admin(f"/explain/{uid}?o=text")
    (root,) = received.named("POST /validate")
    assert (root.trace_id, root.parent_id, root.is_error) == (TRACE, PARENT, False)
    assert root.attributes["admission.outcome"] == "canceled"
    assert "http.response.status_code" not in root.attributes
    turn = "admission.policy test/judge.test.example.com"
    assert received.children(root) == ["admission.read", "admission.decode", "admission.match", turn]
    (call,) = received.named("admission.worker.v1.Worker/Review")
    assert received.children(received.named(turn)[0]) == [call.name]
    sampled = f"00-{TRACE}-{call.span_id}-01"
    assert contexts == [sampled if flags == "01" else f"00-{TRACE}-{root.span_id}-00"]
    line = json.loads(log.read_text())
    assert (line["uid"], line["outcome"], line["traceId"]) == (uid, "canceled", TRACE)
    assert (status, text.partition(":")[0]) == (200, "CANCELED")
    assert "while the gateway waited for test/judge.test.example.com. It got no answer." in text


async def test_every_open_call_is_cancelled(gateway):
    """A hang-up cancels the calls to all workers that were called."""
    reviews = Hanging(), Hanging()
    async with scripted("one", review=reviews[0]) as first, scripted("two", review=reviews[1]) as second:
        workers = {"first": first, "second": second}
        policies = [policy("one", worker="first"), policy("two", worker="second")]
        async with gateway(configuration(source(workers=workers, validating=policies))) as served:
            client = await served.client()
            client.sendall(message(VALIDATING))
            async with asyncio.timeout(WAIT_SECONDS):
                for review in reviews:
                    await review.called.wait()
                await client.close()
                for review in reviews:
                    await review.cancelled.wait()


async def test_a_call_with_side_effects_is_not_broken_off(gateway):
    """A policy with side effects for this request goes on to its end, although the API server has hung up."""
    quiet, effects = Hanging(), Hanging()
    async with scripted("quiet", review=quiet) as first, scripted("effects", review=effects) as second:
        workers = {"first": first, "second": second}
        policies = [
            policy("quiet", worker="first"),
            policy("effects", worker="second", sideEffects="NoneOnDryRun"),
        ]
        async with gateway(configuration(source(workers=workers, validating=policies))) as served:
            client = await served.client()
            client.sendall(message(VALIDATING))
            async with asyncio.timeout(WAIT_SECONDS):
                await quiet.called.wait()
                await effects.called.wait()
                await client.close()
                # The cancels of one review leave together: once one has arrived, the other would have.
                await quiet.cancelled.wait()
            await until(lambda: served.metric("reviews_canceled_total", phase="validating") == 1)
            assert not effects.cancelled.is_set()


async def test_a_hang_up_affects_no_other_client(gateway):
    """Another review about the same object goes on, and is answered."""
    review = Gate(deny("judged"))
    async with scripted("judge", review=review) as target:
        known = configuration(source(workers={"scripted": target}, validating=[policy("judge")]))
        async with gateway(known) as served:
            gone, stays = await served.client(), await served.client()
            gone.sendall(message(VALIDATING))
            async with asyncio.timeout(WAIT_SECONDS):
                await review.called.wait()
            stays.sendall(message(VALIDATING))
            await until(lambda: len(review.calls) == 2)
            await gone.close()
            await until(lambda: served.metric("reviews_canceled_total", phase="validating") == 1)
            review.open.set()
            assert (await stays.answer()).response["status"]["message"] == "judged"
