"""The process of one target: ``python -m tests.fuzz.process TARGET [FLAGS OF LIBFUZZER] CORPUS``.

atheris changes the code of the gateway and its HTTP library when they are imported, so that libFuzzer sees which
branches an input takes and what it is compared with.
"""

import importlib
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

import atheris

LARGEST_INPUT = 1 << 14


def main() -> None:
    """Fuzz; exits the process."""
    name, *flags = sys.argv[1:]
    with atheris.instrument_imports(include=["gateway", "aiohttp"]):
        target = importlib.import_module(f"tests.fuzz.{name}")
        importlib.import_module("gateway.serving.app")  # what is imported later is not instrumented
    with getattr(target, "world", nullcontext)(), tempfile.TemporaryDirectory() as folder:
        seeds, words = Path(folder) / "seeds", Path(folder) / "words"
        seeds.mkdir()
        for number, seed in enumerate(target.seeds()):
            (seeds / f"{number:05}").write_bytes(seed)
        words.write_text("".join(map(_quoted, target.WORDS)))
        atheris.Setup([sys.argv[0], f"-dict={words}", f"-max_len={LARGEST_INPUT}", *flags, str(seeds)], target.run)
        atheris.Fuzz()


def _quoted(word: bytes) -> str:
    """A line of libFuzzer's dictionary."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n'


if __name__ == "__main__":
    main()
