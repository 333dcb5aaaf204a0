"""A Dockerfile, and its build stage without a container engine: each step in a scratch folder that stands for ``/``."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[2]

INSTRUCTIONS = {
    *("ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "RUN", "STOPSIGNAL"),
    *("USER", "WORKDIR"),
}

STEP_SECONDS = 300


def instructions(text):
    """The instructions of a Dockerfile, in stages: pairs of a word and what follows it."""
    lines = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    found = [tuple(line.split(None, 1)) for line in lines if line.strip()]
    stages = []
    for word, rest in found:
        assert word in INSTRUCTIONS, word
        if word == "FROM":
            stages.append([])
        if stages:
            stages[-1].append((word, rest))
    return stages


def bases(text):
    """The images that stages begin from, and defaults of arguments."""
    return re.findall(r"^(?:FROM(?: --platform=\$BUILDPLATFORM)?|ARG \w+=) ?([a-z][^\s$]*)", text, re.MULTILINE)


class Context:
    """What a builder is sent of a folder: its committed files, less what .dockerignore keeps back."""

    def __init__(self, folder):
        listed = subprocess.run(["git", "ls-files"], cwd=folder, capture_output=True, text=True, check=True).stdout
        rules = (folder / ".dockerignore").read_text().split()
        assert rules[0] == "*", "everything is kept back that is not let through"
        through = [rule[1:] for rule in rules if rule.startswith("!")]
        self.folder = folder
        self.files = [path for path in listed.splitlines() if self._sent(path, through, rules[1:])]

    def _sent(self, path, through, rules):
        held = [rule.removeprefix("**/") for rule in rules if rule.startswith("**/")]
        return any(path == each or path.startswith(f"{each}/") for each in through) and not any(
            fnmatch(part, each) for part in path.split("/") for each in held
        )

    def under(self, source):
        """The files that ``COPY source`` means."""
        return [path for path in self.files if path == source or path.startswith(f"{source}/")]


def build(stage, context, scratch, run=lambda words: words):
    """Run a stage's steps. Absolute paths lead into ``scratch``; ``python`` is the interpreter of the tests.

    ``run`` gives what is run instead of the words of a RUN.
    """
    here = scratch
    commands = scratch / ".commands"
    commands.mkdir(parents=True)
    (commands / "python").symlink_to(sys.executable)
    for word, rest in stage:
        if word == "WORKDIR":
            here = scratch / rest.lstrip("/")
            here.mkdir(parents=True, exist_ok=True)
        elif word == "COPY":
            _copy(context, shlex.split(rest), here)
        elif word == "RUN":
            script = re.sub(r"(?<![\w./])/venv\b", str(scratch / "venv"), run(rest))
            path = ":".join([str(commands), *_toolchains(), "/usr/local/bin:/usr/bin:/bin"])
            done = subprocess.run(
                ["sh", "-ec", script],
                cwd=here,
                env={"PATH": path, "HOME": str(scratch), **_index(), **_caches()},
                capture_output=True,
                text=True,
                timeout=STEP_SECONDS,
                check=False,
            )
            assert done.returncode == 0, f"{rest}\n{done.stdout}\n{done.stderr}"


def _index():
    """Where pip finds packages here."""
    config = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    found = dict(line.split("=", 1) for line in config.splitlines() if "=" in line)
    names = {"index-url": "PIP_INDEX_URL", "trusted-host": "PIP_TRUSTED_HOST", "cert": "PIP_CERT"}
    return {names[key.split(".")[-1]]: value.strip("'") for key, value in found.items() if key.split(".")[-1] in names}


def _toolchains():
    """The folders of compilers that are not among the system's programs."""
    return {str(Path(found).parent) for name in ("go", "cargo", "node", "mvn") if (found := shutil.which(name))}


def _caches():
    """Where the tools keep what they have downloaded and compiled: in the homes that they have outside of the steps."""
    home = Path.home()
    known = {"GOPATH": home / "go", "GOCACHE": home / ".cache/go-build", "npm_config_cache": home / ".npm"}
    known |= {"CARGO_HOME": home / ".cargo", "RUSTUP_HOME": home / ".rustup"}
    return {name: os.environ.get(name, str(path)) for name, path in known.items()}


def _copy(context, words, here):
    assert not words[0].startswith("--"), words
    *sources, target = words
    for source in sources:
        files = context.under(source)
        assert files, f"COPY {source}: nothing of this name reaches the builder"
        for path in files:
            # "If <src> is a directory, the entire contents of the directory are copied", not the directory itself.
            inner = Path(path).relative_to(source) if path != source else None
            if inner is None:
                place = here / target / Path(path).name if target.endswith("/") else here / target
            else:
                place = here / target / inner
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(context.folder / path, place)


def exec_form(stage, word):
    """The words of an ENTRYPOINT or CMD: without a shell."""
    return json.loads(dict(stage)[word])
