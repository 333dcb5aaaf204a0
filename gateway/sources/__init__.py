"""Where a configuration comes from: files and directories. (The cluster supplies the same texts.)"""

from gateway.sources.files import MAX_FILE_BYTES, SourceError, load_configuration, read

__all__ = ["MAX_FILE_BYTES", "SourceError", "load_configuration", "read"]
