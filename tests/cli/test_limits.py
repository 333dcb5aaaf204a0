"""Flags of limits: few, and the others follow them."""

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from gateway.bounds import LARGEST_BODIES, MEMORY_BUDGET
from gateway.caching.limits import CacheLimits
from gateway.cli.commands.serve import serve
from gateway.cli.options import BYTES, chosen_limits, limit_options
from gateway.patching.limits import PatchLimits
from gateway.serving.limits import Limits
from gateway.transports.limits import TransportLimits

OWNERS = (Limits, TransportLimits, PatchLimits, CacheLimits)


def chosen(*arguments, processes=1):
    """The limits that a command with these arguments has, of each of so many processes."""
    made = []

    @click.command()
    @limit_options(*OWNERS)
    def command(**values):
        values["processes"] = processes
        made.extend(chosen_limits(values, *OWNERS))
        assert values == {"processes": processes}

    result = CliRunner().invoke(command, [str(argument) for argument in arguments], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return made


def test_flags_that_are_not_given_leave_every_limit_at_its_default():
    """``serve`` uses the defaults of the classes of limits."""
    assert [vars(each) for each in chosen()] == [vars(owner()) for owner in OWNERS]


@given(st.integers(160_000_000, 2**40))
def test_every_share_follows_the_memory_budget(budget):
    """A limit that is a share of the budget is that share of it, and the shares of one process together fit into it."""
    shares = [
        getattr(limits, name)
        for limits in chosen("--memory-budget", budget)
        for name, limit in limits.limits.items()
        if limit.budget_divisor and getattr(limits, name) == budget // limit.budget_divisor
    ]
    assert len(shares) == 10
    assert sum(shares) <= budget


@pytest.mark.parametrize("given", [(), ("--limit-cache-memory-bytes", "90M")])
def test_processes_share_what_is_of_the_budget(given):
    """Each has an equal part of every share, also of one that is given; all other limits are of each process."""
    one, third = chosen(*given), chosen(*given, processes=3)
    for alone, shared in zip(one, third, strict=True):
        for name, limit in alone.limits.items():
            expected = getattr(alone, name)
            assert getattr(shared, name) == (expected // 3 if limit.budget_divisor else expected)


def test_each_process_needs_the_smallest_budget():
    """A budget that is enough for one process is refused for two."""
    assert chosen("--memory-budget", "160M")
    with pytest.raises(click.BadParameter, match="the memory budget is 80000000 bytes for each of 2 processes"):
        chosen("--memory-budget", "160M", processes=2)


@given(st.integers(10, MEMORY_BUDGET // LARGEST_BODIES))
def test_what_carries_a_review_follows_the_largest_body(size):
    """A larger body needs larger messages, answers and patches: no second flag has to be found for each."""
    limits, transport, patches, _ = chosen("--limit-body-bytes", size)
    assert limits.drain_bytes == 2 * size
    assert transport.message_bytes == 2 * size + 1_048_576
    assert transport.webhook_answer_bytes == transport.hook_response_bytes == size * 16 // 10
    assert patches.copied_bytes == size // 10


def test_a_share_that_is_given_is_taken_as_it_is():
    """A limit that the operator sets is used, and the others still follow the budget."""
    limits, transport, _, cache = chosen("--memory-budget", "2Gi", "--limit-cache-memory-bytes", "512Mi")
    assert cache.memory_bytes == 512 * 2**20
    assert limits.body_bytes_in_flight == 2**28
    assert transport.worker_backlog_bytes == transport.queue_open_bytes == 2**28


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("20M", 20_000_000), ("1k", 1000), ("512Mi", 2**29), ("1Gi", 2**30), ("7", 7)]
)
def test_bytes_are_written_as_quantities(text, size):
    """Sizes are written as in a pod's resources."""
    assert BYTES.convert(text, None, None) == size


def test_serve_has_a_flag_for_each_tunable_limit_and_no_other():
    """Limits without a flag are constants."""
    flags = {option.opts[0] for option in serve.params if option.opts[0].startswith(("--limit-", "--memory-"))}
    prefix = {PatchLimits: "patch-", CacheLimits: "cache-"}
    tunable = {
        f"--limit-{prefix.get(owner, '')}{name}".replace("_", "-")
        for owner in OWNERS
        for name, limit in owner.limits.items()
        if limit.help
    }
    assert flags == tunable | {"--memory-budget"}


@pytest.mark.parametrize("owner", OWNERS)
def test_limits_are_set_when_they_are_made(owner):
    """A misspelt name is an error, and a limit cannot be changed later."""
    with pytest.raises(TypeError, match=rf"{owner.__name__} has no limit misspelt"):
        owner(misspelt=1)
    made = owner()
    name = next(iter(owner.limits))
    with pytest.raises(AttributeError, match=f"limit {name} of {owner.__name__} is set when it is made"):
        setattr(made, name, 1)
    assert vars(made) == vars(owner())
