"""One whole gateway, whatever happens to it and in whatever order: each answer is one that the model permits.

Configurations change, workers fail, come back and are updated, caches fill and are purged, Redis is slow, absent or
lies, clients ask at once and hang up, time goes by, and the clock of the wall is set. The invariants of the design are
the oracle:

* Every answer is HTTP 200 with uid, apiVersion and kind of the review, before the budget of ``?timeout=`` ends (1, 2).
* Only a verdict that a worker gave counts; a failure is never one (3, 9).
* The patch has only add, replace and remove, none of which changes nothing; applied, it gives the object that was sent
  with what the verdicts say, and nothing else (4).
* A policy that fails closed is never followed by an allow. One that fails open is in the annotations, the metric and
  the log each time, and in the warnings unless there was one in the last minute (5).
* No cached verdict crosses a configuration, settings, a version, a purge, or its time (6).
* Without Redis, or with one that lies, nothing is different (8). In the end nothing is left (7).
* A path that does not exist gets 404, and a gateway that is not ready says 503: never a verdict (9).
"""

import base64
import copy
import hashlib
import json
from collections import Counter
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
from gateway.engine import engine, invocation_record
from gateway.engine.open_warnings import FailOpenWarnings
from gateway.engine.verdicts import Allow, Change, ChangeKind, Deny, Failure
from gateway.policies.model import Phase
from gateway.reasons import Reason
from gateway.serving import http_server, review_handler
from gateway.serving.budget import budget
from gateway.serving.driver import Driver
from gateway.serving.loaded_configuration import LoadedConfiguration
from gateway.serving.refusals import Refusal
from gateway.serving.route_table import RouteTable
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import FAILED_OPEN, HTTP_REQUESTS_REJECTED
from gateway.telemetry.unjudged import UnjudgedLog
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
    Warnings,
    WorkerState,
)
from tests.virtual.redis import MODES, PRESENT
from tests.virtual.worker import ScriptedWorker

WORKERS = ("left", "right")
NAMES = {MUTATING: ("ma", "mb"), VALIDATING: ("va", "vb", "vc")}
KINDS = {MUTATING: "Mutating", VALIDATING: "Validating"}
PHASES = {MUTATING: Phase.MUTATING, VALIDATING: Phase.VALIDATING}
RIGHT, SLOW, SILENT, BROKEN, RAISING = "right", "slow", "silent", "broken", "raising"
SECONDS = {RIGHT: 0.01, SLOW: 3.0}
SETTLE_SECONDS = 15.0
"""After which a configuration is in force in any case: more than a start waits for workers."""

BUDGETS = {
    "?timeout=10s": 8.95,
    "?timeout=1s": 0.45,
    "?timeout=2s": 0.95,
    "?timeout=3s": 1.95,
    "?timeout=30s": 28.95,
    "?timeout=31s": 28.95,
    "?timeout=10": 8.95,
    "": 8.95,
}
"""Seconds of each: "N - 1 s, for N = 1 half a second, absent or unreadable 9 s, less 50 ms to answer"."""

TIMEOUTS = st.sampled_from(["?timeout=10s", *BUDGETS])
API_VERSIONS = st.sampled_from(["admission.k8s.io/v1", "admission.k8s.io/v1beta1"])
NO_PATHS = ("/", "/nope", "/validate/none", "/mutate/none", "/validate/", "/Validate", "/validate/none/0123abcd")
LINE_PREFIX = "virtual/"
TICK = 0.25
MUTANT_LIVES = 500
WITHOUT_SHRINKING = {"phases": (HypothesisPhase.explicit, HypothesisPhase.reuse, HypothesisPhase.generate)}
"""A life is thirty steps: shrinking it takes minutes. Its steps are printed."""

LABEL = "/metadata/labels"
HEAD = "POST {} HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"


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


def changed(token):
    """What a mutating policy does with it: a label, written in one of three ways; two say more than they change."""
    value, label = str(token), str(token.label)
    if token.version == "2":
        patch = {"metadata": {"labels": {token.policy: value, "v": label}}}
        return Change(kind=ChangeKind.MERGE_PATCH, content=json.dumps(patch).encode())
    operations = [{"op": "add", "path": f"{LABEL}/{token.policy}", "value": value}]
    if token.version == "3":
        operations = [
            {"op": "test", "path": f"{LABEL}/v", "value": label},
            {"op": "replace", "path": f"{LABEL}/v", "value": "other"},
            *operations,
            {"op": "replace", "path": f"{LABEL}/v", "value": label},
        ]
    return Change(kind=ChangeKind.JSON_PATCH, content=json.dumps(operations).encode())


@dataclass(kw_only=True)
class Review:
    """A review that was sent."""

    uid: str
    api_version: str
    phase: str
    label: int
    obj: dict
    ends: float
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
        self.is_right = True
        self.failed_open = Counter()
        self.refused = Counter()
        self.gateway = VirtualGateway(policies=text(policies), workers=self._worker, has_redis=True)
        self.gateway.__enter__()
        self.loop = self.gateway.loop
        self.model = Model(now=self.loop.time, wall=self.loop.seconds_since_1970)
        self.warnings = Warnings()
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
        at, wall = self.loop.time(), self.loop.seconds_since_1970()
        self.model.given.append(Given(at=at, wall=wall, uid=call.uid, token=token))
        said = {"version": version, "audit_annotations": {"token": str(token)}}
        if token.denies:
            return Deny(message=f"{token} denies", **said), SECONDS[mode]
        change = None
        if token.policy in NAMES[MUTATING]:
            change = changed(token)
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
        self.model.purge(names)

    @rule(seconds=st.sampled_from([0.02, 0.5, 3.0, 12.0, 70.0, 400.0]))
    def wait(self, seconds):
        self._pass(seconds)

    @rule(seconds=st.sampled_from([-100_000.0, -60.0, -20.0, 20.0, 60.0, 100_000.0]))
    def set_clock(self, seconds):
        self.loop.wall_offset += seconds
        self.model.clock_was_set()

    @rule(mode=st.sampled_from([PRESENT, *MODES]))
    def redis(self, mode):
        self.gateway.redis.become(mode)

    @rule()
    def forget_memory(self):
        self.gateway.forget_memory()

    @rule(
        phase=st.sampled_from([MUTATING, VALIDATING, VALIDATING]),
        label=st.integers(0, 1),
        times=st.integers(1, 3),
        timeout=TIMEOUTS,
        api_version=API_VERSIONS,
    )
    def review(self, phase, label, times, timeout, api_version):
        for _ in range(times):
            self.reviews.append(self._send(phase, label, timeout, api_version))

    @rule(
        phases=st.sampled_from([(MUTATING,), (VALIDATING,), (MUTATING, VALIDATING)]),
        timeout=TIMEOUTS,
        api_version=API_VERSIONS,
    )
    def review_to_the_end(self, phases, timeout, api_version):
        self.reviews += [self._send(phase, label, timeout, api_version) for phase in phases for label in (0, 1)]
        self._pass(0.02)
        while self.reviews:
            self._pass(TICK)

    @rule(path=st.sampled_from(NO_PATHS), is_ready=st.booleans(), timeout=TIMEOUTS)
    def review_of_nothing(self, path, is_ready, timeout):
        """A path that does not exist, or every path while the gateway is not ready."""
        # Those that were sent before are in the gateway's hands.
        self.loop.run_until_idle()
        self.is_right = False
        self.gateway.routes.not_ready = None if is_ready else "planted"
        paths = {path: (b"404", Refusal.PATH)}
        if not is_ready:
            paths["/validate"] = paths["/mutate"] = (b"503", Refusal.NOT_READY)
        for each, (status, refusal) in paths.items():
            client = self.gateway.connect()
            client.send(self._request(each + timeout, VALIDATING, "admission.k8s.io/v1", self._object(0)))
            self.loop.run_until_idle()
            assert client.received.startswith(b"HTTP/1.1 " + status), (
                f"{each} was not refused: {bytes(client.received)}"
            )
            assert b"allowed" not in client.received
            client.hang_up()
            self.refused[refusal] += 1
        self.gateway.routes.not_ready = None
        self.is_right = True

    @precondition(lambda self: self.gateway is not None and self.reviews)
    @rule()
    def hang_up(self):
        # Not one that has its answer already: what it says is counted.
        self._check_answers()
        if self.reviews:
            self.reviews.pop(0).client.hang_up()

    # ------------------------------------------------------------------------------- what must hold

    def teardown(self):
        if self.gateway is None:
            return
        try:
            if not self.is_right:
                # What is wrong is known: another error would hide it.
                return
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
        assert not self.is_right or not self.gateway.tasks

    def _object(self, label):
        metadata = {"name": f"p{self.count}", "labels": {"v": str(label)}, "annotations": {"a/b~c": "\u00e9"}}
        spec = {"containers": [{"name": "a", "image": "i"}, {"name": "b", "args": ["", "1"]}], "n": 1.5, "none": None}
        return {"metadata": metadata, "spec": spec}

    def _request(self, path, phase, api_version, obj):
        """The bytes of a request."""
        request = {
            "uid": f"u{self.count}",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": "t",
            "operation": "CREATE",
            "object": obj,
        }
        body = json.dumps({"apiVersion": api_version, "kind": "AdmissionReview", "request": request}).encode()
        return HEAD.format(path, len(body)).encode() + body

    def _send(self, phase, label, timeout, api_version):
        self.count += 1
        obj = self._object(label)
        client = self.gateway.connect()
        sent = self.loop.time()
        client.send(self._request(f"/{phase}{timeout}", phase, api_version, obj))
        return Review(
            uid=f"u{self.count}",
            api_version=api_version,
            phase=phase,
            label=label,
            obj=obj,
            ends=sent + BUDGETS[timeout],
            sent=sent,
            since=len(self.model.moments) - 1,
            purged=dict(self.model.purged),
            client=client,
        )

    def _pass(self, seconds):
        """Let time go by, in steps: the model must know when an answer came."""
        ends = self.loop.time() + seconds
        while True:
            self.loop.run_for(min(TICK if self.reviews else seconds, max(ends - self.loop.time(), 0.0)))
            self._check_answers()
            if self.loop.time() >= ends:
                return

    def _check_answers(self):
        self.is_right = False
        self._check_each_answer()
        self.is_right = True

    def _check_each_answer(self):
        errors, self.gateway.errors.found[:] = list(self.gateway.errors.found), []
        if not (self.has_raised and all("calling a worker failed" in str(each) for each in errors)):
            assert not errors
        for review in [each for each in self.reviews if not each.client.received]:
            assert self.loop.time() <= review.ends + 2 * TICK, "no answer within the budget"
        answered = [each for each in self.reviews if each.client.received]
        for review in sorted(answered, key=lambda each: each.client.answered[1]):
            self.reviews.remove(review)
            self._check(review)
        self._check_metrics()

    def _check(self, review):
        head, _, content = bytes(review.client.received).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        review.client.hang_up()
        at = review.client.answered[0]
        assert at <= review.ends + 1e-3, f"no answer within the budget, but {at - review.ends} s later"
        envelope = json.loads(content)
        response = envelope.pop("response")
        assert envelope == {"apiVersion": review.api_version, "kind": "AdmissionReview"}
        assert response["uid"] == review.uid
        status, annotations = response.get("status", {}), response.get("auditAnnotations", {})
        names = NAMES[review.phase]
        found = {
            kind: {
                name: annotations[key] for name in names if (key := f"{name}.test.example.com_{kind}") in annotations
            }
            for kind in ("token", "failed", "failed-open")
        }
        final = patched(review.obj, response)
        labels = {name: value for name, value in final["metadata"]["labels"].items() if name != "v"}
        expected = copy.deepcopy(review.obj)
        expected["metadata"]["labels"] |= labels
        assert final == expected, "the patch says more than the verdicts"
        why_not = self.model.why_not(
            Answered(
                uid=review.uid,
                phase=review.phase,
                label=review.label,
                sent=review.sent,
                since=review.since,
                purged=review.purged,
                is_late=at >= review.ends - 1e-3,
                allowed=response["allowed"],
                code=status.get("code", 200),
                message=status.get("message", ""),
                tokens=found["token"],
                failed=found["failed"] | found["failed-open"],
                failed_open=found["failed-open"],
                labels=labels,
            )
        )
        assert not why_not, f"{why_not}: {response}"
        self._check_loudness(review, response, found, at)

    def _check_loudness(self, review, response, found, at):
        """A failure that was ignored is in the warnings once a minute, and in the log always."""
        opened = found["failed-open"]
        loud = [text for text in response.get("warnings", ()) if "(failurePolicy Ignore: let pass)" in text]
        warned = {text.partition(".")[0]: text for text in loud}
        assert len(warned) == len(loud)
        why_not = self.warnings.why_not(opened, warned, at)
        assert not why_not, f"{why_not}: {response}"
        lines = self.gateway.unjudged.by_uid.pop(review.uid, [])
        logged = [
            (each["phase"], each["allowed"], {one["name"]: one["reason"] for one in each["policies"]}) for each in lines
        ]
        named = {f"{LINE_PREFIX}{name}.test.example.com": reason for name, reason in opened.items()}
        expected = [(PHASES[review.phase].value, response["allowed"], named)] if opened else []
        assert logged == expected, f"the log of unjudged admissions has {logged}, not {expected}"
        self.failed_open.update((review.phase, name) for name in opened)

    def _check_metrics(self):
        metrics = self.gateway.metrics
        counted = {
            (phase, name): metrics.value(FAILED_OPEN, PHASES[phase], f"{LINE_PREFIX}{name}.test.example.com")
            for phase, names in NAMES.items()
            for name in names
        }
        assert counted == {key: self.failed_open[key] for key in counted}, "failed_open_total differs"
        for refusal in (Refusal.PATH, Refusal.NOT_READY):
            assert metrics.value(HTTP_REQUESTS_REJECTED, refusal) == self.refused[refusal]


def patched(obj, response):
    """The object that the API server gets; each operation is of a permitted kind, and changes something."""
    assert response.get("patchType") == ("JSONPatch" if "patch" in response else None)
    if "patch" not in response:
        return obj
    for operation in json.loads(base64.b64decode(response["patch"])):
        assert operation["op"] in {"add", "replace", "remove"}, operation
        before, obj = obj, jsonpatch.apply_patch(obj, [operation])
        assert obj != before, f"{operation} changes nothing"
    return obj


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


def with_beta(response, *, uid, api_version, mutating, _original=review_handler.encode):
    del api_version
    return _original(response, uid=uid, api_version="admission.k8s.io/v1beta1", mutating=mutating)


def with_annotations(patch, _original=engine.encode_patch):
    extra = {"op": "add", "path": "/metadata/annotations", "value": {"x": "y"}}
    return json.dumps([*json.loads(_original(patch)), extra]).encode()


def with_itself(patch, _original=engine.encode_patch):
    operations = json.loads(_original(patch))
    return json.dumps([*operations, *operations]).encode()


def silently(self, decision, _original=Metrics.decided):
    before = dict(self._families[FAILED_OPEN].series)
    values = {labels: series.value for labels, series in before.items()}
    _original(self, decision)
    for labels, series in self._families[FAILED_OPEN].series.items():
        series.value = values.get(labels, 0.0)


def somewhere(self, path, _original=RouteTable.target):
    return _original(self, path) or _original(self, "/validate")


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
    "there is no last good version": (
        "could judge|allowed is|other failurePolicy",
        (LoadedConfiguration, "follow", nothing),
    ),
    "no timer ends a call": ("no answer within the budget", (Driver, "_set_alarm", lambda self, wake_at: None)),
    "every answer is v1beta1": ("v1beta1", (review_handler, "encode", with_beta)),
    "the timeout is not read": (
        "no answer within the budget|BUDGET_EXHAUSTED",
        (http_server, "budget", lambda text: budget("10s")),
    ),
    "the patch says more": ("more than the verdicts", (engine, "encode_patch", with_annotations)),
    "the patch says it twice": ("changes nothing", (engine, "encode_patch", with_itself)),
    "no failure is warned of": ("no warning", (FailOpenWarnings, "due", lambda self, policy, now: False)),
    "every failure is warned of": ("two warnings", (FailOpenWarnings, "due", lambda self, policy, now: True)),
    "no failure is logged": (
        "the log of unjudged admissions",
        (UnjudgedLog, "decided", lambda self, decision: None),
    ),
    "no failure is counted": ("failed_open_total", (Metrics, "decided", silently)),
    "an unknown path is /validate": ("was not refused", (RouteTable, "target", somewhere)),
    "a gateway that is not ready judges": (
        "(/validate|/mutate) was not refused",
        (http_server, "require_review", lambda request, path, not_ready: None),
    ),
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
