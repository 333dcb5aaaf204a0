"""Worlds of a module's own."""

from tests.integration.fixtures import certificates, pair, serving, trust

__all__ = ["certificates", "pair", "serving", "trust"]
