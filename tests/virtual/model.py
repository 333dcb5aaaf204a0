"""What a gateway must answer, worked out beside it: from what its workers were, and what each of them has ever said.

The model knows no engine, cache or plan. It keeps a list of moments: which policies are in force, and how each worker
is. A review may see any moment between its first byte and its answer, and one configuration of these. For each policy
it must have an outcome that is permitted (``Model.why_not``):

* A token is a verdict that the policy's worker gave: in a call of this very review, or, if the policy has a cache, in
  an earlier one that is not older than its ttl (than staleIfError, if the worker cannot judge now), was not purged, and
  was given by the version that the worker has now, for the same settings and the same label. The cache goes by the
  clock of the wall, calls in progress by the other one: a verdict may be as old as either says.
* A failure is permitted only while the worker cannot judge, or the policy cannot be called as it is configured. That
  the budget is exhausted is one only at its end, and only if a policy of the review had that reason before it.
* A failure that is ignored makes a warning, unless there was one about this policy within a minute (``Warnings``).

The request is allowed exactly if no policy that is enforced has denied it, or failed under failurePolicy Fail.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

REFUSED_SETTING = 9
"""Settings that every worker refuses."""

POLICY_SECONDS = 1.0
"""timeoutSeconds of each policy."""

CALL_SECONDS = 10.0
"""Longer than any call is open, whoever shares it."""

WARNING_SECONDS = 60.0
"""The shortest time between two warnings that a policy was ignored."""

BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"
VALIDATING, MUTATING = "validate", "mutate"


@dataclass(frozen=True, kw_only=True)
class PolicySpec:
    """A policy of the configuration. ``setting`` is a number; ``ttl`` 0: it has no cache."""

    name: str
    phase: str
    worker: str
    setting: int
    fails_closed: bool
    mode: str
    ttl: float
    stale: float

    @property
    def described_as(self) -> tuple[object, ...]:
        """What a worker's description of it depends on."""
        return self.phase, self.name, self.worker, self.setting

    def document(self) -> dict[str, object]:
        """It in a configuration."""
        cache = {"cache": {"ttl": f"{self.ttl:g}s", "staleIfError": f"{self.stale:g}s"}} if self.ttl else {}
        return {
            "name": f"{self.name}.test.example.com",
            "worker": self.worker,
            "policy": self.name,
            "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
            "failurePolicy": "Fail" if self.fails_closed else "Ignore",
            "sideEffects": "None",
            "timeoutSeconds": POLICY_SECONDS,
            "settings": {"n": self.setting},
            "inputs": ["/object/metadata/labels/v"],
            "mode": self.mode,
            **cache,
        }


@dataclass(frozen=True, kw_only=True)
class Token:
    """What a verdict was made of; workers write it into the verdict. ``data`` is what else the worker knew then."""

    worker: str
    policy: str
    version: str
    setting: int
    label: int
    data: int

    def __str__(self) -> str:
        return f"{self.worker}.{self.policy}.{self.version}.{self.setting}.{self.label}.{self.data}"

    @property
    def denies(self) -> bool:
        """Whether it is a denial."""
        return (int(self.version) + self.setting + self.label + self.data) % 3 == 0


@dataclass(frozen=True, kw_only=True)
class Given:
    """A call that a worker has got: when, by both clocks, for which review, and the verdict that it makes of it."""

    at: float
    wall: float
    uid: str
    token: Token


@dataclass(frozen=True, kw_only=True)
class WorkerState:
    """``versions`` of its replicas; none: it is down. ``last``: those that it had before. ``judges``: it works.

    ``settled`` False: its replicas have just changed, and the gateway may not know yet.
    """

    versions: tuple[str, ...] = ("1",)
    last: tuple[str, ...] = ("1",)
    judges: bool = True
    settled: bool = True

    @property
    def can_judge(self) -> bool:
        """Whether a call is answered."""
        return self.judges and self.settled and bool(self.versions)


@dataclass(frozen=True, kw_only=True)
class InForce:
    """A policy as it is called; ``callable`` False: it fails as it is configured."""

    spec: PolicySpec
    callable: bool


@dataclass(frozen=True, kw_only=True)
class Moment:
    """How things are from ``at`` on, until the next moment."""

    at: float
    policies: tuple[InForce, ...]
    workers: Mapping[str, WorkerState]


@dataclass(frozen=True, kw_only=True)
class Answered:
    """An answer: what it says of each policy. ``tokens`` and ``failed`` (reason codes) are by policy name."""

    uid: str
    phase: str
    label: int
    sent: float
    since: int
    """The number of moments before it was sent, but for the last of them."""

    purged: Mapping[str, tuple[float, float]]
    """When each policy was purged last, before it was sent: by both clocks, the latest that each of them was."""

    is_late: bool
    """Whether the answer came at the end of the budget."""

    allowed: bool
    code: int
    message: str
    tokens: Mapping[str, str]
    failed: Mapping[str, str]
    failed_open: Mapping[str, str]
    labels: Mapping[str, str]
    """Of the object after the patch, written by policies."""


@dataclass(kw_only=True)
class Model:
    """See above."""

    now: Callable[[], float]
    wall: Callable[[], float]
    configured: tuple[PolicySpec, ...] = ()
    moments: list[Moment] = field(default_factory=list)
    given: list[Given] = field(default_factory=list)
    purged: dict[str, tuple[float, float]] = field(default_factory=dict)
    offsets: list[tuple[float, float]] = field(default_factory=list)

    # ----------------------------------------------------------------------------------- what happens

    def start(self, workers: Mapping[str, WorkerState], configured: tuple[PolicySpec, ...]) -> None:
        """The first configuration is in force; all workers are there."""
        self.moments = [Moment(at=self.now(), policies=(), workers=workers)]
        self.clock_was_set()
        self.reload(configured)

    def reload(self, configured: tuple[PolicySpec, ...]) -> None:
        """The policies are these. One that cannot be called as it is configured stays in its last good version."""
        before = {each.spec.name: each.spec for each in self.moments[-1].policies if each.callable}
        self.configured = configured
        self._add(policies=tuple(self._in_force(spec, before.get(spec.name)) for spec in configured))

    def worker(self, name: str, **changes: object) -> None:
        """A worker has changed. What waited for its description is in force."""
        workers = dict(self.moments[-1].workers)
        state = replace(workers[name], **changes)
        workers[name] = replace(state, last=state.versions or state.last)
        self._add(workers=workers)
        before = {each.spec.name: each.spec for each in self.moments[-1].policies if each.callable}
        policies = tuple(self._in_force(spec, before.get(spec.name)) for spec in self.configured)
        if policies != self.moments[-1].policies:
            self._add(policies=policies)

    def clock_was_set(self) -> None:
        """The clock of the wall shows another time from now on."""
        self.offsets.append((self.now(), self.wall() - self.now()))

    def purge(self, names: list[str]) -> None:
        """These policies were purged."""
        now, wall = self.now(), self.wall()
        self.purged |= {name: (now, max(wall, self.purged.get(name, (0.0, 0.0))[1])) for name in names}

    def _in_force(self, spec: PolicySpec, before: PolicySpec | None) -> InForce:
        is_described = bool(self.moments[-1].workers[spec.worker].versions) or (
            before is not None and before.described_as == spec.described_as
        )
        if spec.setting != REFUSED_SETTING and is_described:
            return InForce(spec=spec, callable=True)
        return InForce(spec=before or spec, callable=before is not None)

    def _add(self, **changes: object) -> None:
        self.moments.append(replace(self.moments[-1], at=self.now(), **changes))

    # ----------------------------------------------------------------------------------- what is permitted

    def why_not(self, answer: Answered) -> str:
        """Why an answer is wrong, under each configuration that it may have seen; "" if it is right."""
        seen = self.moments[answer.since :]
        reasons = [
            "; ".join(self._wrong(answer, [each for each in policies if each.spec.phase == answer.phase], seen))
            for policies in dict.fromkeys(moment.policies for moment in seen)
        ]
        return "" if "" in reasons else " | ".join(reasons)

    def _wrong(  # noqa: C901, PLR0912 - one case for each outcome
        self, answer: Answered, policies: list[InForce], seen: list[Moment]
    ) -> Iterator[str]:
        names = {each.spec.name for each in policies}
        yield from (f"{name} is not in force" for name in {*answer.tokens, *answer.failed} - names)
        refusing: list[str] = []
        labels: dict[str, str] = {}
        for each in policies:
            spec, text, reason = each.spec, answer.tokens.get(each.spec.name), answer.failed.get(each.spec.name)
            if refusing and answer.phase == MUTATING:
                if text or reason:
                    yield f"{spec.name} stands behind a denial, and is in the answer"
                continue
            if text is not None:
                token = self._token(text)
                if token is None or (why := self._unlike(token, answer, each, seen)):
                    yield f"{spec.name} has {text}: {why if token else 'no worker has said so'}"
                    continue
                if token.denies and spec.mode == "enforce":
                    refusing.append(spec.name)
                elif not token.denies and spec.mode == "enforce":
                    labels[spec.name] = text
            elif reason is not None:
                if reason == BUDGET_EXHAUSTED:
                    if not answer.is_late:
                        yield f"{spec.name} failed ({reason}), and there was time left"
                    elif not any(self._may_fail(one, answer) for one in policies):
                        yield f"{spec.name} failed ({reason}), and all workers could judge"
                elif not self._may_fail(each, answer):
                    yield f"{spec.name} failed ({reason}), and its worker could judge"
                if spec.fails_closed and spec.mode == "enforce":
                    refusing.append(spec.name)
                if (spec.name in answer.failed_open) == (spec.fails_closed or spec.mode != "enforce"):
                    yield f"{spec.name} failed, and the annotation is that of the other failurePolicy"
            elif answer.allowed:
                yield f"{spec.name} has no outcome"
        if answer.allowed == bool(refusing):
            yield f"allowed is {answer.allowed}, refused by {refusing or 'none'}"
        if answer.phase == MUTATING and answer.allowed and answer.labels != labels:
            yield f"the patch gives {answer.labels}, the verdicts {labels}"

    def _token(self, text: str) -> Token | None:
        return next((given.token for given in self.given if str(given.token) == text), None)

    def _unlike(self, token: Token, answer: Answered, each: InForce, seen: list[Moment]) -> str:
        """Why this verdict is none of this policy's about this request; "" if it is."""
        spec = each.spec
        question = spec.worker, spec.name, spec.setting, answer.label
        if (token.worker, token.policy, token.setting, token.label) != question:
            return f"the question is {question}"
        if not each.callable:
            return "it cannot be called"
        given = [one for one in self.given if one.token == token]
        if any(one.uid == answer.uid for one in given):
            return ""
        if not spec.ttl:
            return "it was said in another review, and there is no cache"
        states = [moment.workers[spec.worker] for moment in seen]
        if not any(
            {token.version} == set(each.versions) or (not each.versions and token.version in each.last)
            for each in states
        ):
            return "the worker has another version"
        longest = spec.ttl + (spec.stale if self._may_fail(each, answer) else 0.0)
        now, wall = answer.purged.get(spec.name, (0.0, 0.0))
        since = [(answer.sent - longest, answer.sent + offset - longest) for offset in self._offsets(answer.sent)]
        return (
            ""
            if any(self._is_after(one, *oldest) for oldest in since for one in given if self._is_after(one, now, wall))
            else f"it was said before {max(answer.sent - longest, now)}"
        )

    def _is_after(self, one: Given, at: float, wall: float) -> bool:
        """Whether a call is not older than these times, by one of the clocks."""
        return one.at >= at - 1e-3 or one.wall >= wall - 1e-3

    def _offsets(self, since: float) -> list[float]:
        """What the clock of the wall was ahead by, from a moment on."""
        first = max(number for number, (at, _) in enumerate(self.offsets) if at <= since)
        return [offset for _, offset in self.offsets[first:]]

    def _may_fail(self, each: InForce, answer: Answered) -> bool:
        """Whether it cannot be called, or its worker did not judge, now or while a shared call was open."""
        first = answer.since
        while each.spec.ttl and first and self.moments[first].at >= answer.sent - CALL_SECONDS:
            first -= 1
        seen = self.moments[first:]
        return not each.callable or any(not moment.workers[each.spec.worker].can_judge for moment in seen)


@dataclass(kw_only=True)
class Warnings:
    """When a user was last warned that a policy was ignored, by its name."""

    last: dict[str, float] = field(default_factory=dict)

    def why_not(self, ignored: Mapping[str, str], warned: Mapping[str, str], now: float) -> str:
        """Why the warnings of an answer are wrong; "" if they are right. Answers are given in their order.

        ``ignored`` has the reason codes of the policies that were ignored, ``warned`` the texts of the warnings.
        """
        if not warned.keys() <= ignored.keys():
            return f"a warning about {sorted(warned.keys() - ignored.keys())}, which did not fail open"
        for name, reason in ignored.items():
            ago = now - self.last.get(name, float("-inf"))
            if name in warned:
                if reason not in warned[name]:
                    return f"the warning about {name} does not say {reason}"
                if ago < WARNING_SECONDS - 1e-3:
                    return f"two warnings about {name} within {ago} s"
                self.last[name] = now
            elif ago >= WARNING_SECONDS:
                return f"no warning about {name}, the last was {ago} s ago"
        return ""
