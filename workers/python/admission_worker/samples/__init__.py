"""The sample policies, each in its own module, and the worker that serves them.

    python -m admission_worker.samples --listen unix:samples.sock

All of them are pure functions of their documents, claim what they read, and are idempotent: called with an object that
they have changed, they change nothing. On UPDATE the policies for containers ignore what the UPDATE does not change:
most of a Pod is immutable, and an annotation on a Deployment should not cause a rollout.
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
