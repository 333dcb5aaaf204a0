"""A gateway process with a worker of any language behind it, which it starts itself."""

from tests.integration.fixtures import certificates, pair, serving, trust

__all__ = ["certificates", "pair", "serving", "trust"]
