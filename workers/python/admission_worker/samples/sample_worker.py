"""The worker of the sample policies. Each policy's module registers its policy."""

from typing import Final

from admission_worker import Worker

VERSION: Final = "0.1.0"
"""The SDK's version, written here because the SDK may be installed as part of the gateway's wheel."""

worker = Worker("samples", version=VERSION)
