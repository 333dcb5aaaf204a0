"""Policies worth having, each in a module of its own, and the worker that serves them.

    python -m admission_worker.samples --listen unix:samples.sock

All of them are pure functions of their documents, claim what they read, and are idempotent: called again about an
object that they have changed, they change nothing. Those which look into containers leave alone what an UPDATE did not
bring: most of a Pod is immutable, and nobody who sets an annotation on a Deployment expects a rollout.
"""

from admission_worker.samples import (
    default_labels,
    default_resources,
    image_registry,
    no_privileged,
    required_labels,
    sidecar,
)
from admission_worker.samples.sample_worker import worker

__all__ = [
    "default_labels",
    "default_resources",
    "image_registry",
    "no_privileged",
    "required_labels",
    "sidecar",
    "worker",
]
