"""Fixtures of a gateway process that starts a worker of any language."""

from tests.integration.fixtures import certificates, pair, serving, trust

__all__ = ["certificates", "pair", "serving", "trust"]
