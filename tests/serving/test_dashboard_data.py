"""What the dashboard is sent: recent reviews, a review with its object, statistics of policies, the state."""

import json
from datetime import datetime
from types import SimpleNamespace

import msgspec
import pytest
from msgspec.structs import replace

from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.model import Cache, Configuration, FailurePolicy, Phase
from gateway.reasons import Reason
from gateway.serving.admin import Check
from gateway.serving.dashboard import gateway_state
from gateway.serving.dashboard.assembly import review_details
from gateway.serving.dashboard.gateway_state import GatewayState
from gateway.serving.dashboard.live_data import STATE_INTERVALS, LiveEvents
from gateway.serving.dashboard.policy_statistics import PolicyStatistics, added_up, review_statistics
from gateway.serving.dashboard.recent_reviews import MOST_FIRST, MOST_NEW, RecentReviews, summary, unix_time
from gateway.telemetry.decision_memory import DecisionMemory
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import CACHE_LOOKUPS, FAILED_OPEN, POLICY_CALL_SECONDS
from tests.world import decide, label, policy, request


def decision(uid="u", answer=None, *, ended=None, **members):
    """A decision of one mutating policy about a pod."""
    failure_policy = FailurePolicy.IGNORE if isinstance(answer, Failure) else FailurePolicy.FAIL
    made, _ = decide(
        [policy("a", failure_policy=failure_policy)], {"a": answer or Allow()}, on=request(uid=uid, **members)
    )
    return made if ended is None else replace(made, ended=ended)


def recent(*decisions):
    """The list, with these decisions retained."""
    memory = DecisionMemory(decisions=10_000)
    for each in decisions:
        memory.decided(each)
    return RecentReviews(memory), memory


def uids(summaries):
    return [each["uid"] for each in summaries]


def test_a_browser_begins_with_the_newest_reviews():
    """As many as its list may have at once, in order."""
    reviews, _ = recent(*(decision(f"u{number}", ended=number) for number in range(1, 300)))
    assert uids(reviews.first()) == [f"u{number}" for number in range(300 - MOST_FIRST, 300)]


def test_each_review_is_sent_once():
    """What is new since the last time; nothing, if nothing is."""
    reviews, memory = recent(decision("u1", ended=1.0), decision("u2", Deny(), ended=2.0))
    assert uids(reviews.next()[0]) == ["u1", "u2"]
    assert reviews.next() == ([], 0)
    memory.decided(decision("u3", ended=3.0))
    assert uids(reviews.next()[0]) == ["u3"]


def test_a_busy_gateway_sends_what_needs_attention():
    """The refused, failed and ignored failures first, then the newest; and how many are left out."""
    failure = Failure(reason=Reason.WORKER_TIMEOUT, message="m")
    first = [decision("denied", Deny(), ended=1.0), decision("open", failure, ended=2.0)]
    reviews, _ = recent(*first, *(decision(f"u{number}", ended=3.0 + number) for number in range(500)))
    shown, skipped = reviews.next()
    assert len(shown) == MOST_NEW
    assert skipped == 502 - MOST_NEW
    assert uids(shown)[:2] == ["denied", "open"]
    assert uids(shown)[-1] == "u499"


def test_a_summary_names_what_every_policy_did():
    """Who changed, denied, failed; and a failure that was ignored."""
    chain = [
        policy("one"),
        policy("two", index=1, failure_policy=FailurePolicy.IGNORE),
        policy("three", index=2),
    ]
    answers = {"one": label("a"), "two": Failure(reason=Reason.WORKER_FAILURE, message="m"), "three": Deny()}
    shown = summary(decide(chain, answers)[0])
    assert shown["outcome"] == "denied"
    assert shown["changed"] == ["test/one.test.example.com"]
    assert shown["failed"] == shown["failedOpen"] == ["test/two.test.example.com"]
    assert shown["denied"] == ["test/three.test.example.com"]


def test_a_review_has_one_duration():
    """Until its response is encoded, in the list as on its page."""
    made = decision()
    made.ledger.encoded = made.ended + 0.25
    milliseconds = summary(made)["milliseconds"]
    assert milliseconds == pytest.approx(1000 * (made.ended - made.started) + 250)
    assert milliseconds == review_details(made)["decision"]["ledger"]["spentMs"]


def test_a_summary_is_bounded_and_needs_no_user():
    """Whatever a request is called, and whoever sent it in a form that cannot be read."""
    shown = summary(decision("u" * 10_000, name="n" * 10_000, namespace="s" * 10_000, userInfo={"username": 7}))
    assert len(json.dumps(shown)) < 2_000
    assert shown["user"] == ""


SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "labels": {}}, "data": {"k": "aHVudGVyMg=="}}


def test_a_review_has_its_object_without_secrets():
    """Coloured fields have their places in it; a Secret has only its keys."""
    changed, _ = decide([policy("a")], {"a": label("team", "x")})
    details = review_details(changed)
    assert details["decision"]["changedBy"][0]["path"] == "/metadata/labels/team"
    assert details["object"]["metadata"]["labels"]["team"] == "x"
    kind = {"group": "", "version": "v1", "kind": "Secret"}
    secret, _ = decide([policy("a")], {"a": label("team", "x")}, on=request(SECRET, kind=kind))
    details = review_details(secret)
    assert "k" in details["object"]["data"]
    shown = msgspec.json.encode(details)
    assert b"hunter2" not in shown
    assert b"aHVudGVyMg" not in shown


def configuration(*policies, errors=()):
    """A loaded configuration with these mutating policies, none of which is described."""
    known = Configuration(mutating=policies, errors=errors)
    return SimpleNamespace(
        configuration=known,
        loaded=SimpleNamespace(timestamp=lambda: 1.0),
        policies=lambda: policies,
        unavailable=tuple,
        workers=SimpleNamespace(availabilities=lambda phase: {}),
    )


async def test_statistics_are_those_of_the_metrics():
    """Verdicts, durations, cache; null without a cache."""
    cached, plain = policy("a", cache=Cache(ttl=60)), policy("b", index=1)
    metrics = Metrics()
    metrics.know([cached, plain], [])
    for result, count in (("memory", 3), ("miss", 1)):
        metrics.count(CACHE_LOOKUPS, Phase.MUTATING, cached.qualified_name, result, amount=count)
    metrics.observe(POLICY_CALL_SECONDS, 0.004, Phase.MUTATING, cached.qualified_name)
    metrics.decided(decide([cached, plain], {"a": Allow(), "b": Deny()})[0])
    statistics = PolicyStatistics(lambda: configuration(cached, plain), metrics)
    first, second = json.loads(await statistics.read())["policies"]
    assert (first["lookups"], first["hits"]) == (4, 3)
    assert (second["lookups"], second["hits"]) == (None, None)
    assert first["durations"][2] == 1
    assert (first["verdicts"]["allow"], second["verdicts"]["deny"]) == (1, 1)
    assert await statistics.read() is await statistics.read()
    reviews = review_statistics(metrics)
    assert reviews["outcomes"] == {"allowed": 0, "denied": 1, "failed": 0}
    assert sum(reviews["durations"]) == 1


async def test_statistics_of_several_processes_are_added_up():
    """Policy by policy, whatever else one of them has; names and buckets stay."""
    both, one = policy("a", cache=Cache(ttl=60)), policy("b", index=1)
    contents = []
    for known in ([both, one], [both]):
        metrics = Metrics()
        metrics.know(known, [])
        metrics.observe(POLICY_CALL_SECONDS, 0.004, Phase.MUTATING, both.qualified_name)
        metrics.count(CACHE_LOOKUPS, Phase.MUTATING, both.qualified_name, "memory")
        metrics.decided(decide(known, {"a": Allow(), "b": Deny()})[0])
        statistics = PolicyStatistics(lambda known=known: configuration(*known), metrics)
        contents.append(await statistics.read())
    together, alone = json.loads(added_up(contents)), json.loads(contents[0])
    first, second = together["policies"]
    assert (first["verdicts"]["allow"], first["durations"][2], first["lookups"], first["hits"]) == (2, 2, 2, 2)
    assert second == alone["policies"][1]
    assert (together["buckets"], first["name"]) == (alone["buckets"], "test/a.test.example.com")


@pytest.fixture
def state():
    """The state of a gateway: ``state(policies, metrics)``."""

    def made(*policies, metrics=None, rejected=(), errors=(), retained=()):
        return GatewayState(
            loaded=lambda: configuration(*policies, errors=errors),
            checks=lambda: [Check("configuration", None, "a note"), Check("certificate", "expired")],
            rejected=lambda: rejected,
            retained=recent(*retained)[1],
            metrics=metrics or Metrics(),
            process="p",
        )

    return made


def test_the_state_has_what_an_operator_must_know(state):
    """Checks, ignored failures by policy, rejected errors."""
    metrics = Metrics()
    metrics.count(FAILED_OPEN, Phase.MUTATING, "test/a.test.example.com", amount=2)
    read = state(policy("a"), policy("b"), metrics=metrics, rejected=["an error"]).read()
    assert read["failedOpen"] == [{"phase": "mutating", "policy": "test/a.test.example.com", "count": 2}]
    assert [check["problem"] for check in read["checks"]] == [None, "expired"]
    assert read["rejected"] == ["an error"]


def test_the_state_has_the_time_of_the_last_ignored_failure(state):
    """Of the decisions that are retained; none, if it is older than they are, or if no failure was ignored."""
    metrics = Metrics()
    failure = Failure(reason=Reason.WORKER_TIMEOUT, message="m")
    decisions = [decision("open", failure, ended=1.0), decision("refused", Deny(), ended=2.0)]
    assert state(policy("a"), metrics=metrics, retained=decisions).read()["lastFailedOpen"] is None
    metrics.decided(decisions[0])
    read = state(policy("a"), metrics=metrics, retained=decisions).read()
    assert datetime.fromisoformat(read["lastFailedOpen"]).timestamp() == pytest.approx(unix_time(1.0), abs=1)
    assert state(policy("a"), metrics=metrics, retained=decisions[1:]).read()["lastFailedOpen"] is None


def test_the_state_is_bounded(state):
    """A thousand errors of any length are listed in part."""
    read = state(rejected=["e" * 100_000] * 1_000).read()
    assert len(read["rejected"]) == gateway_state.LISTED + 1
    assert read["rejected"][-1] == "and 800 more; `admission-gateway check` has all of them"
    assert len(json.dumps(read)) < 300_000


def test_an_unchanged_state_is_sent_once(state):
    """It is read now and then, and sent when it has changed."""
    metrics = Metrics()
    reviews, memory = recent()
    events = LiveEvents(state(policy("a"), metrics=metrics), reviews, metrics)
    assert [name for name, _ in events.first()] == ["state", "reviews", "numbers"]

    def names():
        return [name for _ in range(STATE_INTERVALS) for name, _ in events.next()]

    assert names().count("state") == 1
    assert names() == ["numbers"] * STATE_INTERVALS
    metrics.count(FAILED_OPEN, Phase.MUTATING, "test/a.test.example.com")
    memory.decided(decision("u", ended=1.0))
    found = names()
    assert (found.count("state"), found.count("reviews")) == (1, 1)
