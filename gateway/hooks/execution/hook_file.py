"""Where a hook is."""

import os
from pathlib import Path


def hook_path(path: str, directory: str) -> Path:
    """A hook's path from the root: a relative one begins in ``directory``."""
    return Path(os.path.abspath(Path(directory, path)))  # noqa: PTH100 - a link stays a link: it is what is watched
