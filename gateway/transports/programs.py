"""Where programs are found that a Worker names without a path."""

import os
import sys
from pathlib import Path


def search_path() -> str:
    """The PATH of the workers that the gateway starts: ``python`` is found beside the gateway's own interpreter."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
