"""What all tests share: how many cases a property tries, and the recorded traffic of a real kube-apiserver."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("default", max_examples=100, deadline=None)
# All properties together take about four minutes on two cores, and may take eight. (workers/python/tests has the same.)
settings.register_profile(
    "long", max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Behind nohup, or as a shell's background job, SIGHUP or SIGINT is ignored, and so it would be in the processes that
# tests start and stop with them. A handler is not inherited.
for _number in (signal.SIGHUP, signal.SIGINT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda *_: None)


@pytest.fixture
def redis(redis_server):
    """The module's server, empty and running, as every test finds it; who uses it says in ``redis_server`` which."""
    if redis_server.process is None:
        redis_server.start()
    redis_server.resume()
    with redis_server.client as client:
        client.config_set("maxmemory", 0)
        client.flushall()
    return redis_server
