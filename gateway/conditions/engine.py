"""cel-expr-python (Google's cel-cpp), where it is installed: RE2 and the words of cel-go's grammar are had from it.

There are wheels for Linux with glibc, on x86_64 and aarch64. Elsewhere ``cel`` is None: conditions work all the same,
but for regular expressions (see ``libraries.regexes``).
"""

from typing import Any

cel: Any
try:
    from cel_expr_python import cel  # type: ignore[import-untyped, no-redef]  # it comes without py.typed
except ImportError:
    cel = None

__all__ = ["cel"]
