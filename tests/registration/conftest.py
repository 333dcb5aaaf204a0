"""Configurations to make entries of."""

from tests.policies.conftest import configuration, load_documents, policy, worker

__all__ = ["configuration", "load_documents", "policy", "worker"]
