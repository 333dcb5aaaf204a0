"""Where a configuration comes from: files, directories, hooks. (The cluster supplies the same texts.)"""

from gateway.sources.files import MAX_FILE_BYTES, SourceError, read
from gateway.sources.hooks import CONFIGURATION, HookDirectory
from gateway.sources.loading import load_configuration
from gateway.sources.watching import Source

__all__ = [
    "CONFIGURATION",
    "MAX_FILE_BYTES",
    "HookDirectory",
    "Source",
    "SourceError",
    "load_configuration",
    "read",
]
