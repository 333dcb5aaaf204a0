"""Admission gateway: one hardened webhook for kube-apiserver, and behind it policies as small workers in any language.

The rooms and which may know which are drawn in docs/architecture.md; an import contract in pyproject.toml keeps them.
"""

__version__ = "0.1.0"
