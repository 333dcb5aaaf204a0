"""What is installed only by name: ``pip install 'admission-gateway[EXTRA]'``."""

from importlib.util import find_spec
from typing import Final

NEEDS_REDIS_EXTRA: Final = "needs the extra: pip install 'admission-gateway[redis]'"
"""What a message ends with that begins with what needs it."""

NEEDS_CLUSTER_EXTRA: Final = "needs the extra: pip install 'admission-gateway[cluster]'"
"""The same, for what talks to the Kubernetes API."""

NEEDS_OPENTELEMETRY_EXTRA: Final = "needs the extra: pip install 'admission-gateway[opentelemetry]'"
"""The same, for what exports traces and the decision log by OTLP."""


def has_redis_extra() -> bool:
    """Whether what talks to Redis is installed."""
    return find_spec("redis") is not None and find_spec("hiredis") is not None
