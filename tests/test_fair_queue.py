"""Who is next: fairness without a clock."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from gateway.fair_queue import FairQueue, Waiting

TARGET = 1.0


def waiting(item, *flow, cost=1.0, since=0.0, until=100.0):
    return Waiting(item, flow or ("server", "namespace"), cost, since, until)


def popped(queue, now=0.0):
    found = queue.pop(now)
    return None if found is None else found.item


def test_one_flow_is_judged_in_the_order_of_arrival():
    """While its oldest review has not waited for long."""
    queue = FairQueue(TARGET)
    for number in range(3):
        queue.push(waiting(number))
    assert [popped(queue) for _ in range(4)] == [0, 1, 2, None]


def test_a_flow_that_waits_too_long_is_judged_newest_first():
    """What is judged then is judged at once; the rest waits until it is refused."""
    queue = FairQueue(TARGET)
    for number in range(3):
        queue.push(waiting(number, since=number))
    assert [popped(queue, now=2.5) for _ in range(3)] == [2, 1, 0]


def backlog():
    """A queue with a flow of which far more wait than can be judged, and one that came later."""
    queue = FairQueue(TARGET)
    for number in range(100):
        queue.push(waiting(number, since=0.0))
    queue.push(waiting("new", since=2.0))
    return queue


def test_who_waited_too_long_waits_until_its_flow_has_had_no_newer_one():
    """For as long as its oldest may wait; a late one of another flow does not wait for that."""
    queue = backlog()
    assert queue.pop(2.5, late=False).item == "new"
    assert queue.pop(3.4, late=False) is None
    queue.push(waiting("other", "server", "other", since=0.0))
    assert queue.pop(3.4, late=False).item == "other"
    assert queue.pop(3.6, late=False).item == 99


def test_a_few_late_ones_wait_for_no_newer_one():
    """The loop stood still, and their flow has no more than its share."""
    queue = FairQueue(TARGET)
    queue.push(waiting("old", since=0.0))
    queue.push(waiting("new", since=2.0))
    assert [queue.pop(2.5, late=False).item for _ in range(2)] == ["new", "old"]


def test_late_ones_are_judged_where_there_is_time():
    """Its caller says that nothing else needs it."""
    queue = backlog()
    assert [queue.pop(2.5, late=True).item for _ in range(2)] == ["new", 99]


def test_a_newcomer_is_next_whatever_a_flood_has_waiting():
    """A namespace with one review waits for no more than one of the flood's."""
    queue = FairQueue(TARGET)
    for number in range(500):
        queue.push(waiting(number, "server", "flood"))
    assert [popped(queue) for _ in range(100)] == list(range(100))
    queue.push(waiting("innocent", "server", "other"))
    assert "innocent" in [popped(queue), popped(queue)]


def test_a_server_with_many_namespaces_is_one_server():
    """Fairness holds between API servers first, then between the namespaces of each."""
    queue = FairQueue(TARGET)
    for number in range(100):
        queue.push(waiting("many", "first", f"namespace-{number}"))
        queue.push(waiting("one", "second", "namespace"))
    assert Counter(popped(queue) for _ in range(100)) == {"many": 50, "one": 50}


def test_large_reviews_are_fewer():
    """A flow whose reviews cost ten times as much gets a tenth of the turns."""
    queue = FairQueue(TARGET)
    for _ in range(200):
        queue.push(waiting("large", "server", "large", cost=10.0))
        queue.push(waiting("small", "server", "small", cost=1.0))
    assert Counter(popped(queue) for _ in range(110)) == {"small": 100, "large": 10}


def test_what_is_overdue_is_given_once():
    """And never what has been popped or removed."""
    queue = FairQueue(TARGET)
    removed = waiting("removed", until=1.0)
    queue.push(removed)
    queue.push(waiting("late", until=2.0))
    queue.push(waiting("in time", until=9.0))
    queue.remove(removed)
    queue.remove(removed)
    (late,) = queue.overdue(5.0)
    assert late.item == "late"
    assert list(queue.overdue(5.0)) == []
    queue.wait_longer(late, 6.0)
    assert list(queue.overdue(5.9)) == []
    assert list(queue.overdue(6.0)) == [late]
    queue.remove(late)
    assert [popped(queue), popped(queue)] == ["in time", None]


STEPS = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("nmop"), st.sampled_from([1.0, 3.0, 20.0]), st.booleans())
    | st.sampled_from(["pop", "remove", "overdue"]),
    max_size=60,
)


@given(STEPS)
def test_nothing_is_lost_and_no_flow_starves(steps):
    """Every item leaves exactly once, and while a flow waits no other gets more than its cost and one item ahead."""
    queue: FairQueue[int] = FairQueue(TARGET)
    inside: dict[int, Waiting[int]] = {}
    left = []
    for now, step in enumerate(steps):
        if step == "pop":
            found = queue.pop(now)
            left += [found] if found else []
            assert (found is None) == (not inside)
        elif step == "remove":
            for each in list(inside.values())[:1]:
                queue.remove(each)
                left.append(each)
        elif step == "overdue":
            for each in queue.overdue(now):
                queue.remove(each)
                left.append(each)
        else:
            server, namespace, cost, is_short = step
            new = waiting(now, server, namespace, cost=cost, since=now, until=now + (3 if is_short else 50))
            inside[now] = new
            queue.push(new)
        for each in left:
            inside.pop(each.item, None)
        assert len(queue) == len(inside)
    assert len({each.item for each in left}) == len(left)
    rest = [popped(queue, len(steps)) for _ in range(len(queue))]
    assert sorted(rest) == sorted(inside)


@given(st.lists(st.integers(1, 5), min_size=2, max_size=5), st.integers(1, 40))
def test_flows_that_always_wait_get_the_same(costs, turns):
    """Whatever their reviews cost, the work that two flows got differs by one review of each, at most."""
    queue = FairQueue(TARGET)
    got = Counter({name: 0 for name, _ in enumerate(costs)})
    for name, cost in enumerate(costs):
        for _ in range(turns + 1):
            queue.push(waiting(name, "server", name, cost=float(cost)))
    for _ in range(turns):
        found = queue.pop(0.0)
        got[found.item] += found.cost
    assert max(got.values()) - min(got.values()) <= 2 * max(costs)


def test_one_review_at_a_time_does_not_starve_a_backlog():
    """A name that always comes back before the next turn gets half of them."""
    queue = FairQueue(TARGET)
    for _ in range(100):
        queue.push(waiting("backlog", "server", "backlog"))
    turns = Counter()
    for _ in range(50):
        queue.push(waiting("single", "server", "single"))
        turns[popped(queue)] += 1
        if turns["single"] + turns["backlog"] < 2:
            continue
        turns[popped(queue)] += 1
    assert abs(turns["single"] - turns["backlog"]) <= 2


def test_a_thousand_names_leave_no_state():
    """Also where something else waits all the time."""
    queue = FairQueue(TARGET)
    for number in range(1000):
        queue.push(waiting(number, "server", number))
        queue.push(waiting("other", "server", "always"))
        popped(queue)
        popped(queue)
    assert len(queue._root._names["server"]._names) < 10
