"""The worker that holds the sample policies. Each policy's module registers itself with it."""

from typing import Final

from admission_worker import Worker

VERSION: Final = "0.1.0"
"""The SDK's, which is not always installed by its name: the gateway's wheel brings it along."""

worker = Worker("samples", version=VERSION)
