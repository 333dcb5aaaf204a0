"""The worker that holds the sample policies. Each policy's module registers itself with it."""

from importlib.metadata import version

from admission_worker import Worker

worker = Worker("samples", version=version("admission-worker"))
