"""A page of docs/migrate, gone through as its reader would: in a folder of its own, section by section, and back.

The blocks of a section are taken in their order. One with a name is written to the file of that name; one in ``sh`` is
run by bash, ``serve`` as a gateway that goes on; a ``text`` behind one in ``sh`` is what that prints, or a part of it.
What stands behind "Undo" is run only on the way back.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.docs.pages import ROOT, pages
from tests.integration.process import WAIT_SECONDS, Serving
from tests.integration.running import POLL_SECONDS
from tests.migrate.cluster import Cluster

_BY_HAND = re.compile(r"^(.*\} )[\d.]+$", re.MULTILINE)
"""A metric's value: others may have been counted besides."""

_SERVE = "admission-gateway serve"

WRITTEN = {"yaml", "python", "json"}
"""Languages of files. The line before another block may speak of a file too."""

REFUSED = ("Error from server", " is invalid: ", " refused, ")
"""What a command says that ends with 1."""


class Walk:
    """A reader at work.

    Args:
        page: a page's name.
        folder: an empty one, to work in; the current one.
        said: what stands in the page, and what it is here: ports, authorities.
        pods: as what the gateway runs: namespace and app.
    """

    def __init__(self, page, folder, said, *, pods=("admission-gateway", "gateway")):
        self.pods = pods
        self.page = pages()[page]
        self.folder = Path(folder)
        self.cluster = Cluster(folder)
        self.said = dict(said)
        self.gateway = None
        self.reads_policies = False
        self._surroundings()

    def _surroundings(self):
        """A clone of the repository, as far as the pages speak of it, and commands in it."""
        (self.folder / ".venv").mkdir()
        (self.folder / ".venv/bin").symlink_to(Path(sys.executable).parent)
        (self.folder / "examples").symlink_to(ROOT / "examples")
        commands = self.folder / ".commands"
        commands.mkdir()
        for name in ("kubectl", "curl"):
            command = commands / name
            command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m tests.migrate.{name} "$@"\n')
            command.chmod(0o755)
        self._environment = {
            **os.environ,
            "CLUSTER": str(self.folder),
            "PATH": f"{commands}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
        }

    def do(self, heading):
        """The section under this heading."""
        blocks = [block for block in self._section(heading) if not _undoes(block)]
        for block, after in zip(blocks, [*blocks[1:], None], strict=True):
            if block.language == "sh":
                shown = after.text if after is not None and after.language == "text" else ""
                self._run(block.text, self.here(shown))
            elif block.name and block.language in WRITTEN:
                self.write(block.name, block.text)

    def undo(self, heading):
        """Back to what was before that section."""
        found = self._section(heading)
        undone = [block for block in found if _undoes(block)]
        for block in undone:
            self._run(block.text, "")
        is_served = [any(_SERVE in block.text for block in blocks) for blocks in (found, undone)]
        if is_served == [True, False]:
            self.stop()

    def write(self, name, text):
        """A file of the reader's; the gateway, if it reads it, has taken it over afterwards."""
        with self._taken_over():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.here(text))

    def stop(self):
        """End the gateway, as Kubernetes does."""
        _end(self.gateway)
        self.gateway = None

    def _section(self, heading):
        """The blocks between this heading and the next of its level."""
        starts = [number for number, line, is_code in self.page.lines() if not is_code and line.startswith("## ")]
        lines = self.page.text.splitlines()
        (start,) = [number for number in starts if lines[number - 1] == f"## {heading}"]
        end = next((number for number in starts if number > start), len(lines) + 1)
        return [block for block in self.page.blocks() if start < block.line < end]

    def here(self, text):
        """A text of the page, as it is to be read here."""
        for there, here in self.said.items():
            text = text.replace(there, here)
        return text

    def _run(self, text, shown):
        script = self.here(text)
        if _SERVE in script:
            self._serve(script)
            return
        with self._taken_over():
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", script],
                env=self._environment,
                cwd=self.folder,
                capture_output=True,
                text=True,
                timeout=2 * WAIT_SECONDS,
                check=False,
            )
        output = done.stdout + done.stderr
        expected = 1 if any(words in shown for words in REFUSED) else 0
        assert done.returncode == expected, f"{script}\n{output}"
        printed = _BY_HAND.sub(r"\1N", output).splitlines()
        missing = [line for line in _BY_HAND.sub(r"\1N", shown).splitlines() if line not in printed]
        assert not missing, f"{script}\ndid not print\n" + "\n".join(missing) + f"\nbut\n{output}"

    def _serve(self, script):
        """The gateway that the page serves, in place of the one before, as a Deployment is rolled out."""
        before = self.gateway
        words = shlex.split(script.replace("\\\n", " "))
        start = words.index("serve") + 1
        self.reads_policies = "--policies" in words
        reported = {"ADMISSION_GATEWAY_RELOAD_INTERVAL": "0", "ADMISSION_GATEWAY_SHUTDOWN_DELAY": "2"}
        self.gateway = Serving(*words[start:], env=reported).ready()
        self.cluster.run(*self.pods, self.gateway.port)
        _end(before)
        self.said |= {
            "127.0.0.1:8443": f"127.0.0.1:{self.gateway.port}",
            "127.0.0.1:9443": f"127.0.0.1:{self.gateway.admin_port}",
        }

    def _taken_over(self):
        return _TakenOver(self)


class _TakenOver:
    """Around something that may change what a gateway serves: at the end it serves that."""

    def __init__(self, walk):
        self._walk = walk

    def __enter__(self):
        self._gateway = self._walk.gateway if self._walk.reads_policies else None
        if self._gateway is not None:
            self._files, self._count = self._look(), self._loads()

    def __exit__(self, kind, *_):
        if self._gateway is None or kind is not None or self._look() == self._files:
            return
        # Not by itself while half of the files are new: when they all are.
        self._gateway.process.send_signal(signal.SIGHUP)
        ends = time.monotonic() + WAIT_SECONDS
        while self._loads() == self._count:
            last = list(self._gateway.err)[-20:]
            assert time.monotonic() < ends, "\n".join(("the gateway does not take it over:", *last))
            time.sleep(POLL_SECONDS)

    def _look(self):
        return {path: path.read_bytes() for path in self._walk.folder.glob("policies/*.yaml")}

    def _loads(self):
        return self._gateway.metric("configuration_reloads_total", result="loaded")


def _end(gateway):
    if gateway is not None:
        try:
            gateway.terminate()
            gateway.exit_code()
        finally:
            gateway.stop()


def _undoes(block):
    return block.before.startswith("Undo")
