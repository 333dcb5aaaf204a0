"""Kubernetes' own API: namespaces and authorizations for reviews, policies, registration, certificates."""
