"""One whole gateway, whatever happens to it and in whatever order: each answer is one that the model permits.

Configurations change, workers fail, come back and are updated, caches fill and are purged, clients ask at once and hang
up, and time goes by. The invariants of the design are the oracle:

* Every answer is HTTP 200 with the request's uid, before the budget ends (1, 2).
* Only a verdict that a worker gave counts; a failure is never one (3, 9), and a patch says what the verdicts say (4).
* A policy that fails closed is never followed by an allow; one that fails open is in the annotations (5).
* No cached verdict crosses a configuration, settings, a version, a purge, or its time (6).
* A worker that is away costs its own policies only (8). In the end nothing is left (7).
"""

import base64
import hashlib
import json
from dataclasses import dataclass, replace

import jsonpatch
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import Phase as HypothesisPhase
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from gateway.caching import caller
from gateway.caching.cache import VerdictCache
from gateway.caching.cache_keys import policy_prefix
from gateway.engine import invocation_record
from gateway.engine.verdicts import Allow, Change, ChangeKind, Deny, Failure
from gateway.reasons import Reason
from gateway.serving.driver import Driver
from gateway.serving.loaded_configuration import LoadedConfiguration
from gateway.transports.workers import Workers
from tests.virtual.gateway import VirtualGateway, policies_yaml, worker_yaml
from tests.virtual.model import (
    MUTATING,
    REFUSED_SETTING,
    VALIDATING,
    Answered,
    Given,
    Model,
    PolicySpec,
    Token,
    WorkerState,
)
from tests.virtual.worker import ScriptedWorker

WORKERS = ("left", "right")
NAMES = {MUTATING: ("ma", "mb"), VALIDATING: ("va", "vb", "vc")}
KINDS = {MUTATING: "Mutating", VALIDATING: "Validating"}
RIGHT, SLOW, SILENT, BROKEN, RAISING = "right", "slow", "silent", "broken", "raising"
SECONDS = {RIGHT: 0.01, SLOW: 3.0}
SETTLE_SECONDS = 15.0
"""After which a configuration is in force in any case: more than a start waits for workers."""

BUDGET_SECONDS = 8.95
"""Of ?timeout=10s."""

TICK = 0.25
MUTANT_LIVES = 500
WITHOUT_SHRINKING = {"phases": (HypothesisPhase.explicit, HypothesisPhase.reuse, HypothesisPhase.generate)}
"""A life is thirty steps: shrinking it takes minutes. Its steps are printed."""

LABEL = "/metadata/labels"
HEAD = "POST /{} HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"


def specs(phase):
    """Some policies of a phase, each name once."""

    def of(name):
        return st.builds(
            PolicySpec,
            name=st.just(name),
            phase=st.just(phase),
            worker=st.sampled_from(WORKERS),
            setting=st.sampled_from([1, 1, 2, 2, REFUSED_SETTING]),
            fails_closed=st.booleans(),
            mode=st.sampled_from(["enforce"] if phase == MUTATING else ["enforce", "enforce", "warn", "audit"]),
            ttl=st.sampled_from([0.0, 10.0, 300.0, 300.0]),
            stale=st.sampled_from([0.0, 60.0]),
        )

    chosen = st.lists(st.sampled_from(NAMES[phase]), unique=True, min_size=1)
    return chosen.flatmap(lambda names: st.tuples(*(of(name) for name in sorted(names))))


CONFIGURATIONS = st.tuples(specs(MUTATING), specs(VALIDATING)).map(lambda both: (*both[0], *both[1]))


CHANGES = {
    "worker": lambda spec: WORKERS[spec.worker == WORKERS[0]],
    "setting": lambda spec: 1 if spec.setting == 2 else 2,
    "fails_closed": lambda spec: not spec.fails_closed,
    "ttl": lambda spec: 0.0 if spec.ttl else 300.0,
}
"""Of one field of a policy."""


def text(policies):
    """The configuration in YAML."""
    made = "".join(map(worker_yaml, WORKERS))
    for phase, kind in KINDS.items():
        made += policies_yaml(kind, [spec.document() for spec in policies if spec.phase == phase])
    return made


@dataclass(kw_only=True)
class Review:
    """A review that was sent."""

    uid: str
    phase: str
    label: int
    sent: float
    since: int
    purged: dict
    client: object


class WholeGateway(RuleBasedStateMachine):
    """Does everything that can be done to a gateway; checks each answer."""

    gateway = None

    @initialize(policies=CONFIGURATIONS.filter(lambda each: all(one.setting != REFUSED_SETTING for one in each)))
    def start(self, policies):
        self.modes = dict.fromkeys(WORKERS, RIGHT)
        self.data = dict.fromkeys(WORKERS, 0)
        self.reviews = []
        self.count = 0
        self.has_raised = False
        self.gateway = VirtualGateway(policies=text(policies), workers=self._worker)
        self.gateway.__enter__()
        self.loop = self.gateway.loop
        self.model = Model(now=self.loop.time)
        self.model.start(dict.fromkeys(WORKERS, WorkerState()), policies)

    def _worker(self, name):
        return ScriptedWorker(
            name=name,
            policies=(*NAMES[MUTATING], *NAMES[VALIDATING]),
            answer=lambda call, version: self._answer(name, call, version),
            refused_settings=frozenset([b'{"n":%d}' % REFUSED_SETTING]),
        )

    def _answer(self, worker, call, version):
        mode = self.modes[worker]
        if mode == RAISING:
            self.has_raised = True
            raise RuntimeError("planted")
        if not version:
            return Failure(reason=Reason.WORKER_UNAVAILABLE, message="down"), 0.0
        if mode == SILENT:
            return None
        if mode == BROKEN:
            return Failure(reason=Reason.WORKER_FAILURE, message="broken"), 0.01
        document = json.loads(call.document.content)
        token = Token(
            worker=worker,
            policy=call.policy.policy,
            version=version,
            setting=json.loads(call.policy.settings)["n"],
            label=int(document["object"]["metadata"]["labels"]["v"]),
            data=self.data[worker],
        )
        self.model.given.append(Given(at=self.loop.time(), uid=call.uid, token=token))
        said = {"version": version, "audit_annotations": {"token": str(token)}}
        if token.denies:
            return Deny(message=f"{token} denies", **said), SECONDS[mode]
        change = None
        if token.policy in NAMES[MUTATING]:
            operation = {"op": "add", "path": f"{LABEL}/{token.policy}", "value": str(token)}
            change = Change(kind=ChangeKind.JSON_PATCH, content=json.dumps([operation]).encode())
        return Allow(change=change, **said), SECONDS[mode]

    # ------------------------------------------------------------------------------- what happens to it

    @rule(policies=CONFIGURATIONS)
    def change_all(self, policies):
        self.reload(policies)

    def reload(self, policies):
        self.gateway.reload(text(policies))
        self._pass(SETTLE_SECONDS)
        self.model.reload(policies)

    @rule(number=st.integers(0, 4), name=st.sampled_from(sorted(CHANGES)))
    def change_one_field(self, number, name):
        policies = list(self.model.configured)
        number %= len(policies)
        policies[number] = replace(policies[number], **{name: CHANGES[name](policies[number])})
        self.reload(tuple(policies))

    @rule(worker=st.sampled_from(WORKERS), mode=st.sampled_from([RIGHT, RIGHT, RIGHT, SLOW, SILENT, BROKEN, RAISING]))
    def fail(self, worker, mode):
        self.modes[worker] = mode
        self.model.worker(worker, judges=mode == RIGHT)

    @rule(
        worker=st.sampled_from(WORKERS),
        versions=st.sampled_from([(), ("1",), ("2",), ("3",), ("1", "2"), ("2", "2", "3")]),
    )
    def roll_out(self, worker, versions):
        self.model.worker(worker, versions=versions, settled=False)
        self.gateway.worker[worker].roll_out(*versions)
        # A worker that was away is described again after 5 s at most, and then waits for its settings.
        self._pass(6.0)
        self.model.worker(worker, settled=True)

    @rule(worker=st.sampled_from(WORKERS))
    def change_data(self, worker):
        self.data[worker] += 1

    @rule(phase=st.sampled_from([MUTATING, VALIDATING]))
    def purge(self, phase):
        names = [spec.name for spec in self.model.configured if spec.phase == phase]
        self.gateway.run(self.gateway.cache.purge([f"virtual/{name}.test.example.com" for name in names]))
        self.model.purged |= dict.fromkeys(names, self.loop.time())

    @rule(seconds=st.sampled_from([0.02, 0.5, 3.0, 12.0, 70.0, 400.0]))
    def wait(self, seconds):
        self._pass(seconds)

    @rule(phase=st.sampled_from([MUTATING, VALIDATING, VALIDATING]), label=st.integers(0, 1), times=st.integers(1, 3))
    def review(self, phase, label, times):
        for _ in range(times):
            self.reviews.append(self._send(phase, label))

    @rule(phases=st.sampled_from([(MUTATING,), (VALIDATING,), (MUTATING, VALIDATING)]))
    def review_to_the_end(self, phases):
        self.reviews += [self._send(phase, label) for phase in phases for label in (0, 1)]
        self._pass(0.02)
        while self.reviews:
            self._pass(TICK)

    @precondition(lambda self: self.gateway is not None and self.reviews)
    @rule()
    def hang_up(self):
        self.reviews.pop(0).client.hang_up()

    # ------------------------------------------------------------------------------- what must hold

    def teardown(self):
        if self.gateway is None:
            return
        try:
            while self.reviews:
                self._pass(TICK)
            self._pass(60.0)
            load = self.gateway.server.load
            assert (load.requests, load.reviews, load.body_bytes) == (0, 0, 0)
            assert not self.gateway.cache.flights
            assert not self.gateway.handler._drivers
            assert not self.gateway.connections.open
        finally:
            self.gateway.__exit__(None, None, None)
        assert not self.gateway.tasks

    def _send(self, phase, label):
        self.count += 1
        uid = f"u{self.count}"
        request = {
            "uid": uid,
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": "t",
            "operation": "CREATE",
            "object": {"metadata": {"name": f"p{self.count}", "labels": {"v": str(label)}}},
        }
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        body = json.dumps(review).encode()
        client = self.gateway.connect()
        sent = self.loop.time()
        client.send(HEAD.format(f"{phase}?timeout=10s", len(body)).encode() + body)
        since = len(self.model.moments) - 1
        purged = dict(self.model.purged)
        return Review(uid=uid, phase=phase, label=label, sent=sent, since=since, purged=purged, client=client)

    def _pass(self, seconds):
        """Let time go by, in steps: the model must know when an answer came."""
        ends = self.loop.time() + seconds
        while True:
            self.loop.run_for(min(TICK if self.reviews else seconds, max(ends - self.loop.time(), 0.0)))
            self._check_answers()
            if self.loop.time() >= ends:
                return

    def _check_answers(self):
        errors, self.gateway.errors.found[:] = list(self.gateway.errors.found), []
        if not (self.has_raised and all("calling a worker failed" in str(each) for each in errors)):
            assert not errors
        for review in tuple(self.reviews):
            if review.client.received:
                self.reviews.remove(review)
                self._check(review)
            else:
                assert self.loop.time() <= review.sent + BUDGET_SECONDS + 2 * TICK, "no answer within the budget"

    def _check(self, review):
        head, _, content = bytes(review.client.received).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        review.client.hang_up()
        response = json.loads(content)["response"]
        assert response["uid"] == review.uid
        status, annotations = response.get("status", {}), response.get("auditAnnotations", {})
        names = NAMES[review.phase]
        found = {
            kind: {
                name: annotations[key] for name in names if (key := f"{name}.test.example.com_{kind}") in annotations
            }
            for kind in ("token", "failed", "failed-open")
        }
        final = {"metadata": {"labels": {"v": str(review.label)}}}
        if "patch" in response:
            final = jsonpatch.apply_patch(final, json.loads(base64.b64decode(response["patch"])))
        why_not = self.model.why_not(
            Answered(
                uid=review.uid,
                phase=review.phase,
                label=review.label,
                sent=review.sent,
                since=review.since,
                purged=review.purged,
                allowed=response["allowed"],
                code=status.get("code", 200),
                message=status.get("message", ""),
                tokens=found["token"],
                failed=found["failed"] | found["failed-open"],
                labels={name: value for name, value in final["metadata"]["labels"].items() if name != "v"},
            )
        )
        assert not why_not, f"{why_not}: {response}"


def lives(count):
    """So many lives of a gateway."""
    return settings(
        max_examples=count,
        stateful_step_count=30,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        **WITHOUT_SHRINKING,
    )


@pytest.mark.property
def test_every_answer_is_permitted_whatever_happens():
    """In each of twenty lives of a gateway; in the long profile, of two hundred."""
    run_state_machine_as_test(WholeGateway, settings=lives(settings().max_examples // 5))


# ------------------------------------------------------------------------------- that it can fail


def key_without(part):
    """A cache key that lacks a part of the question."""

    def key(call):
        parts = {
            "worker": call.policy.worker,
            "version": call.version,
            "settings": call.policy.settings,
            "document": call.document.digest,
        }
        asked = repr([call.policy.phase, *(value for name, value in parts.items() if name != part)])
        return policy_prefix(call.policy.phase, call.policy.qualified_name) + hashlib.sha256(asked.encode()).digest()

    return caller, "cache_key_of", key


def answered(self, call, answer, *args, _original=Driver.answered):
    return _original(self, call, Allow() if isinstance(answer, Failure) else answer, *args)


async def nothing(self, *args):
    pass


MUTANTS = {
    "the key lacks the version": ("another version", key_without("version")),
    "the key lacks the worker": ("the question is", key_without("worker")),
    "the key lacks the document": ("the question is", key_without("document")),
    "the key lacks the settings": ("the question is", key_without("settings")),
    "a failure of a worker allows": ("has no outcome", (Driver, "answered", answered)),
    "an error of our own allows": ("has no outcome", (Driver, "_broken", lambda self, call, error: Allow())),
    "failurePolicy is always Ignore": (
        "allowed is True",
        (invocation_record, "refuses", lambda failure, policy: False),
    ),
    "a version is always settled": ("another version", (Workers, "settled", lambda self, call: True)),
    "a purge purges nothing": ("it was said before", (VerdictCache, "purge", nothing)),
    "there is no last good version": ("could judge|allowed is", (LoadedConfiguration, "follow", nothing)),
    "no timer ends a call": ("no answer within the budget", (Driver, "_set_alarm", lambda self, wake_at: None)),
}
"""Faults that are planted in the gateway, and what of the model's reasons they lead to."""


@pytest.mark.long
@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_fault_is_found(name, monkeypatch):
    """The machine finds each of them within five hundred lives, most within ten."""
    why, (owner, attribute, fault) = MUTANTS[name]
    monkeypatch.setattr(owner, attribute, fault)
    with pytest.raises(AssertionError, match=why):
        run_state_machine_as_test(WholeGateway, settings=settings(lives(MUTANT_LIVES), derandomize=True))
