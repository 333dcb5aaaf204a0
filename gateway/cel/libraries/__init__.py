"""Kubernetes' CEL libraries, each a table of functions; ``library`` has them all."""
