"""The limits fit each other and what was observed of kube-apiserver."""

import pytest

from gateway.serving.budget import budget
from gateway.serving.limits import Limits


def test_the_defaults_fit_each_other():
    """What depends on another limit is on the right side of it."""
    limits = Limits()
    assert limits.body_bytes > 15_580_000
    assert limits.keepalive_seconds > 90
    assert limits.stop_seconds > budget("30s")
    assert limits.drain_bytes > limits.body_bytes
    assert limits.body_bytes_in_flight > limits.body_bytes
    assert limits.uid_prefix_bytes < limits.body_bytes


@pytest.mark.parametrize("name", list(Limits.limits))
def test_no_limit_may_be_nothing(name):
    """Zero and less would mean never or always: a ValueError that names the limit."""
    for value in (0, -1):
        with pytest.raises(ValueError, match=rf"limit {name} is {value}"):
            Limits(**{name: value})


def test_keep_alive_outlives_the_api_servers_patience():
    """A server that closes first loses requests: that cannot be configured."""
    with pytest.raises(ValueError, match="kube-apiserver's idle time, 90 s"):
        Limits(keepalive_seconds=60)
