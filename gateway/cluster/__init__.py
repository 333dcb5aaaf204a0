"""Kubernetes' own API: namespaces, policies, registration, certificates. The gateway does not talk to a cluster yet."""
