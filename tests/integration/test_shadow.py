"""Shadows with real workers: a next version is compared with the one in force, and affects nothing else."""

import asyncio
import base64
import json
import re
from pathlib import Path

import pytest
import structlog

from gateway.engine.plan import Described
from gateway.policies.fields.shadows import shadow_of
from tests.authorities import Authority
from tests.integration.client import Client, message, post
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import configuration, policy, source, until
from tests.integration.workers import ALLOW, Hanging, always, answer, deny, patch, pb, scripted, status
from tests.traffic import recording
from tests.transports.webhook.servers import Hook, http, json_patch, review, served, server_context

UNDERSTUDY = Path(__file__).parent / "understudy.py"
DIFFERS = "a shadow's verdict differs from that of its policy"
FAILS = "a shadow failed where its policy did not; logged again when it fails for another reason"
MUTATING = recording("pod-create.0m")
VALIDATING = recording("pod-create.1v")
NO_CONSUMER = "127.0.0.1:1"
SHADOW = {"shadow": {"worker": "next"}}
QUICK = ("--reload-interval", 0.02, "--worker-startup-timeout", 30)


def understudy(version):
    """The worker of a version, started by the gateway."""
    return {"command": ["python", str(UNDERSTUDY), version]}


def put(path, text):
    """A file, put in its place whole: who looks never finds half of it."""
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").replace(path)


def compared(served, name, result, phase="validating"):
    """How many comparisons of a policy came to this result."""
    labels = {"phase": phase, "policy": f"test/{name}.test.example.com", "result": result}
    return served.metric("shadow_comparisons_total", **labels)


def results(served, name, phase="validating"):
    """All results of a policy that were ever come to."""
    found = {result: compared(served, name, result, phase) for result in ("same", "different", "failed", "dropped")}
    return {result: number for result, number in found.items() if number}


# ------------------------------------------------------------------------------------ a process, and two versions


@pytest.fixture
def two_versions(serve, tmp_path):
    """Serve with Workers understudy (version 1) and next (version 2)."""

    def start(mutating=(), validating=(), *flags):
        workers = {"understudy": understudy("1"), "next": understudy("2")}
        path = tmp_path / "policies.yaml"
        path.write_text(source(workers=workers, mutating=mutating, validating=validating))
        return serve("--policies", path, "--log-format", "json", *QUICK, *flags).ready()

    return start


async def test_a_next_version_is_compared_with_the_one_in_force(two_versions, trust):
    """The same, another change, another verdict: counted for each policy, logged, not enforced."""
    own = {"worker": "understudy"} | SHADOW
    process = two_versions(
        [policy(name, **own) for name in ("steady", "moving")], [policy(name, **own) for name in ("report", "strict")]
    )
    # The next version may still be starting: the start does not wait for it.
    described = {
        process.logged("a policy can be called", policy=f"test/{name}.test.example.com (shadow)")["version"]
        for name in ("steady", "moving", "report", "strict")
    }
    assert described == {"2"}
    with Client(process.port, trust) as client:
        mutated = client.send(message(MUTATING)).response
        judged = client.send(message(VALIDATING)).response
    assert (mutated["allowed"], judged["allowed"]) == (True, True)
    assert mutated["warnings"] == ["version 1 labels"]
    assert judged["auditAnnotations"]["report.test.example.com_version"] == "1"
    await until(lambda: results(process, "steady", "mutating") == {"same": 1})
    await until(lambda: results(process, "moving", "mutating") == {"different": 1})
    await until(lambda: results(process, "report") == {"same": 1})
    await until(lambda: results(process, "strict") == {"different": 1})
    moving = process.logged(DIFFERS, policy="test/moving.test.example.com")
    assert moving["verdict"][0] == moving["shadow_verdict"][0] == "allows"
    assert [re.sub(".*= ", "", reported) for _, reported in (moving["verdict"], moving["shadow_verdict"])] == [
        '"1"',
        '"2"',
    ]
    strict = process.logged(DIFFERS, policy="test/strict.test.example.com")
    assert (strict["verdict"], strict["shadow_verdict"]) == (["allows"], ["denies (422): not with version 2"])
    assert (strict["worker"], strict["version"]) == ("understudy", "1")
    assert (strict["shadow_worker"], strict["shadow_version"]) == ("next", "2")
    assert process.internal_errors() == []


async def test_settings_that_the_next_version_refuses(two_versions, trust):
    """The policy is served; the shadow fails, and the log says why."""
    own = {"worker": "understudy", "settings": {"refused_by": "2"}} | SHADOW
    process = two_versions((), [policy("report", **own)])
    refused = process.logged("a policy cannot be called", policy="test/report.test.example.com (shadow)")
    assert "refuses the settings: settings/refused_by: not with version 2" in refused["why"]
    with Client(process.port, trust) as client:
        assert client.send(message(VALIDATING)).response["allowed"]
    await until(lambda: results(process, "report") == {"failed": 1})
    assert "refuses the settings" in process.logged(FAILS)["why"]
    assert process.admin("/readyz") == "ok\n"


async def test_no_share_compares_nothing(two_versions, trust):
    """`--shadow-sample-ratio 0`: the shadow is described, and called nothing."""
    process = two_versions((), [policy("report", worker="understudy", **SHADOW)], "--shadow-sample-ratio", 0)
    process.logged("a policy can be called", policy="test/report.test.example.com (shadow)")
    with Client(process.port, trust) as client:
        for _ in range(3):
            assert client.send(message(VALIDATING)).response["allowed"]
    assert results(process, "report") == {}
    process.terminate()
    assert process.exit_code() == 0
    assert process.internal_errors() == []


# ------------------------------------------------------------------------------------- shadows that come and go


def cached(**fields):
    """A policy file: the policy ``report``, cached for an hour, perhaps with a shadow."""
    own = {"worker": "understudy", "cache": {"ttl": "1h"}, "inputs": ["/object/metadata/labels"]}
    return source(
        workers={"understudy": understudy("1"), "next": understudy("2")}, validating=[policy("report", **own, **fields)]
    )


async def test_a_shadow_that_comes_and_goes_flushes_nothing(serve, tmp_path, trust):
    """The policy's verdict is the cached one, before, with and after the shadow, which is compared with it."""
    path = tmp_path / "policies.yaml"
    path.write_text(cached())
    process = serve("--policies", path, *QUICK).ready()
    sources = {"phase": "validating", "policy": "test/report.test.example.com"}

    def answers(which):
        return process.metric("policy_answers_total", **sources, source=which)

    async def called_again(loaded):
        await until(lambda: process.metric("configuration_reloads_total", result="loaded") == loaded)
        with Client(process.port, trust) as client:
            assert client.send(post(VALIDATING.body, "/validate?timeout=10s")).response["allowed"]

    await called_again(0)
    put(path, cached(**SHADOW))
    await called_again(1)
    assert (answers("called"), answers("memory")) == (1, 1)
    # Its worker is there already, and described it at once or will soon: then the cached verdict is compared.
    await until(lambda: sum(results(process, "report").values()) == 1)
    put(path, cached())
    await called_again(2)
    assert (answers("called"), answers("memory")) == (1, 2)
    await until(lambda: "shadow_comparisons_total{" not in process.admin("/metrics"))
    assert process.internal_errors() == []


async def test_an_unreachable_shadow_delays_no_reload(serve, tmp_path, trust):
    """A new configuration is in force although the worker that only a shadow names is nowhere."""
    path = tmp_path / "policies.yaml"
    path.write_text(cached())
    process = serve("--policies", path, *QUICK).ready()
    away = source(
        workers={"understudy": understudy("1"), "next": NO_CONSUMER},
        validating=[policy("report", worker="understudy", **SHADOW)],
    )
    put(path, away)
    await until(lambda: process.metric("configuration_reloads_total", result="loaded") == 1)
    with Client(process.port, trust) as client:
        assert client.send(post(VALIDATING.body, "/validate?timeout=10s")).response["allowed"]
    await until(lambda: results(process, "report") == {"failed": 1})


async def test_an_error_in_a_shadow(serve, tmp_path, trust):
    """It is reported at the start, which serves the policy without it; and a reload with one is rejected."""
    path = tmp_path / "policies.yaml"
    workers = {"understudy": understudy("1")}
    path.write_text(source(workers=workers, validating=[policy("report", worker="understudy", **SHADOW)]))
    process = serve("--policies", path, *QUICK).ready()
    reported = process.err.find(lambda line: line.startswith("error: "))
    assert 'policies[0].shadow.worker: Not found: "next"' in reported
    with Client(process.port, trust) as client:
        assert client.send(post(VALIDATING.body, "/validate?timeout=10s")).response["allowed"]
    put(path, source(workers=workers, validating=[policy("strict", worker="understudy", **SHADOW)]))
    await until(lambda: process.metric("configuration_reloads_total", result="invalid") == 1)


# ------------------------------------------------------------------------------------------ shadows that misbehave


def shadowed(target, shadow, **fields):
    """One policy of each phase, both with a shadow; and the same without."""
    both = {"mutating": [policy("change", **fields)], "validating": [policy("judge", **fields)]}
    bare = source(workers={"scripted": target, "next": shadow}, **both)
    for each in both.values():
        each[0].update(SHADOW)
    return configuration(source(workers={"scripted": target, "next": shadow}, **both)), configuration(bare)


def called_of(request):
    """Which policy a call is put to."""
    return pb.ReviewRequest.FromString(request).call.policy


async def labels_and_denies(request, context):
    """``change`` sets labels, ``judge`` denies."""
    labels = '[{"op": "add", "path": "/metadata/labels", "value": {"a": "1"}}]'
    return patch(labels) if called_of(request) == "change" else deny("no")


async def denies_and_allows(request, context):
    """The opposite."""
    return deny("the shadow says no") if called_of(request) == "change" else ALLOW


async def test_a_shadow_is_never_obeyed(gateway):
    """With a shadow that denies everything, every answer is byte for byte what it is without."""
    answers = []
    async with (
        scripted("change", "judge", review=labels_and_denies) as target,
        scripted("change", "judge", review=denies_and_allows) as shadow,
    ):
        for known in shadowed(target, shadow):
            async with gateway(known) as served:
                await until(lambda served=served: described(served))
                answers.append([(await served.send(message(each))).body for each in (MUTATING, VALIDATING)])
                if known.mutating[0].shadow is not None:
                    await until(lambda served=served: results(served, "judge") == {"different": 1})
                    await until(lambda served=served: results(served, "change", "mutating") == {"different": 1})
    assert answers[0] == answers[1]
    mutated, judged = (json.loads(body)["response"] for body in answers[0])
    assert (mutated["allowed"], "patch" in mutated, judged["allowed"]) == (True, True, False)


def described(served):
    """Whether all shadows can be called."""
    chain = (*served.gateway.configuration.mutating, *served.gateway.configuration.validating)
    shadows = [shadow for each in chain if (shadow := shadow_of(each)) is not None]
    return all(
        isinstance(served.gateway.workers.shadows.availabilities(each.phase).get(each.qualified_name), Described)
        for each in shadows
    )


async def test_no_answer_waits_for_a_shadow(gateway):
    """A shadow that never answers: the review is answered before it is called, and the stop breaks it off."""
    hanging = Hanging()
    async with scripted("judge") as target, scripted("judge", review=hanging) as shadow:
        known = configuration(
            source(
                workers={"scripted": target, "next": shadow},
                validating=[policy("judge", timeoutSeconds=30, **SHADOW)],
            )
        )
        async with gateway(known) as served:
            await until(lambda: described(served))
            for _ in range(3):
                assert (await served.send(message(VALIDATING))).response["allowed"]
            await asyncio.wait_for(hanging.called.wait(), WAIT_SECONDS)
            assert results(served, "judge") == {}
            async with asyncio.timeout(WAIT_SECONDS):
                await served.gateway.stop(drain=False)
                await hanging.cancelled.wait()


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (status(14, "draining"), "WORKER_UNAVAILABLE"),
        (status(13, "broken"), "WORKER_FAILURE"),
        (Hanging(), "WORKER_TIMEOUT"),
    ],
    ids=["unavailable", "broken", "slow"],
)
async def test_a_shadow_in_trouble_is_reported_once(gateway, behaviour, reason):
    """Counted each time, in the log once; the policy goes on."""
    async with scripted("judge") as target, scripted("judge", review=behaviour) as shadow:
        workers = {"scripted": target, "next": shadow}
        # Long enough for the policy itself on a machine that stands still for a moment.
        known = configuration(source(workers=workers, validating=[policy("judge", timeoutSeconds=5, **SHADOW)]))
        with structlog.testing.capture_logs() as logs:
            async with gateway(known) as served:
                await until(lambda: described(served))
                for _ in range(3):
                    assert (await served.send(message(VALIDATING))).response["allowed"]
                await until(lambda: results(served, "judge") == {"failed": 3})
    assert [entry["reason"] for entry in logs if entry["event"] == FAILS] == [reason]


async def test_a_shadow_that_is_away_costs_nothing(gateway):
    """The start does not wait for it, and the policy is called as if there were none."""
    async with scripted("judge") as target:
        known = configuration(
            source(workers={"scripted": target, "next": NO_CONSUMER}, validating=[policy("judge", **SHADOW)])
        )
        with structlog.testing.capture_logs() as logs:
            async with asyncio.timeout(30), gateway(known, wait=1_000_000) as served:
                for _ in range(3):
                    assert (await served.send(message(VALIDATING))).response["allowed"]
                await until(lambda: results(served, "judge") == {"failed": 3})
    reported = [entry for entry in logs if entry["event"] == FAILS]
    assert [(entry["reason"], entry["shadow_worker"]) for entry in reported] == [("CONFIGURATION", "next")]


@pytest.mark.parametrize("which", ["worker", "shadow"])
async def test_a_webhook_has_a_shadow_or_is_one(gateway, tmp_path, which):
    """A webhook and a worker can be compared, in either direction."""
    authority = Authority("webhooks")
    pair = authority.issue("127.0.0.1").write(tmp_path)
    hook = Hook(
        lambda got: http(body=review(got, **json_patch({"op": "add", "path": "/metadata/labels/a", "value": "1"})))
    )
    merges = answer(allow=pb.Allow(merge_patch=b'{"metadata": {"labels": {"a": "1"}}}'))
    async with served(hook, server_context(*pair)), scripted("judge", review=always(merges)) as target:
        names = ["webhook", "scripted"] if which == "worker" else ["scripted", "webhook"]
        about = policy("judge", worker=names[0], shadow={"worker": names[1]})
        ca_bundle = base64.b64encode(authority.pem).decode()
        webhook = {
            "apiVersion": "admission-gateway.dev/v1alpha1",
            "kind": "Worker",
            "metadata": {"name": "webhook"},
            "spec": {"webhook": {"url": hook.url, "caBundle": ca_bundle}},
        }
        text = source(workers={"scripted": target}, mutating=[about])
        async with gateway(configuration(f"{text}---\n{json.dumps(webhook)}\n")) as running:
            await until(lambda: described(running))
            answered = await running.send(message(MUTATING))
            assert answered.response["allowed"], answered
            await until(lambda: results(running, "judge", "mutating") == {"same": 1})
    (called,) = hook.got
    assert called.uid != json.loads(MUTATING.body)["request"]["uid"]


async def test_side_effects_are_had_once(gateway):
    """Of a policy that acts on anything but dry runs, dry runs are compared, and nothing else."""
    calls = []

    async def review(request, context):
        calls.append(request)
        return patch("[]")

    async with scripted("judge") as target, scripted("judge", review=review) as shadow:
        about = policy("judge", sideEffects="NoneOnDryRun", **SHADOW)
        known = configuration(source(workers={"scripted": target, "next": shadow}, mutating=[about]))
        async with gateway(known) as served:
            await until(lambda: described(served))
            body = json.loads(MUTATING.body)
            for dry_run in (False, True):
                body["request"]["dryRun"] = dry_run
                content = post(json.dumps(body).encode(), "/mutate?timeout=10s")
                assert (await served.send(content)).response["allowed"]
            await until(lambda: results(served, "judge", "mutating") == {"same": 1})
            await served.gateway._replays.idle()
    assert len(calls) == 1
