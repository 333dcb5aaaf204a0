"""Where a configuration comes from: files and directories. (The cluster supplies the same texts.)"""

from gateway.sources.files import MAX_FILE_BYTES, SourceError, load_configuration, read
from gateway.sources.watching import Source

__all__ = ["MAX_FILE_BYTES", "Source", "SourceError", "load_configuration", "read"]
