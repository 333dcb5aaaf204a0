"""A directory of hooks: which files are hooks, what they print, and their errors."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gateway.hooks.source import directory, discovery
from gateway.hooks.source.directory import HookDirectory
from gateway.hooks.source.discovery import find_hooks
from gateway.policies.configuration import load
from gateway.sources.files import SourceError
from gateway.sources.loading import load_configuration
from gateway.sources.watching import Source

pytestmark = pytest.mark.integration

WAIT_SECONDS = 120.0

CONFIG = """configVersion: v1
kubernetesValidating:
- name: NAME.example.com
  rules:
  - {operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}
"""
BASH = """#!/bin/bash
if [[ $1 == --config ]]; then
  cat <<'END'
CONFIGEND
fi
"""
PYTHON = """#!PYTHON
import json, sys
if sys.argv[1:] == ["--config"]:
    rule = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    print(json.dumps({"configVersion": "v1", "kubernetesMutating": [{"name": "NAME.example.com", "rules": [rule]}]}))
"""


def write(path, text, mode=0o755):
    """A file with this text and these permissions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def bash(path, name="a", before=""):
    """A hook in bash with a validating binding; ``before`` runs first, in each call."""
    text = BASH.replace("CONFIG", CONFIG.replace("NAME", name))
    return write(path, text.replace("#!/bin/bash\n", f"#!/bin/bash\n{before}\n"))


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "hooks"
    path.mkdir()
    return path


def read(folder, **options):
    """The text of a directory."""
    return HookDirectory(folder, **options).read_now()[0]


def errors_of(folder, **options):
    """The errors of its hooks."""
    return [str(error) for error in read(folder, **options).errors]


def running(word):
    """The processes whose environment or command contains this text."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if word.encode() in command:
            found.append(int(process.name))
    return found


# ------------------------------------------------------------------------------------------------------ which files


def test_hooks_are_executable_files_in_the_order_of_their_paths(folder):
    """In any subdirectory; except hidden files, libraries, documentation and configuration."""
    for name in [
        "b.sh",
        "a/z",
        "a-b/y",
        "a/b/c",
        ".hidden",
        ".git/hook",
        "lib/x.sh",
        "a/lib/x",
        "c.md",
        "c.yaml",
        "c.txt",
    ]:
        write(folder / name, "")
    write(folder / "__pycache__/x.pyc", "")
    found = find_hooks(folder)
    # "-" stands before "/": shell-operator sorts whole paths.
    assert [str(path.relative_to(folder)) for path in found.hooks] == ["a-b/y", "a/b/c", "a/z", "b.sh"]
    assert found.skipped == []


def test_files_that_are_no_hooks_are_warnings(folder):
    """With what to do; the other files are hooks."""
    bash(folder / "hook")
    idle = write(folder / "forgotten", "", mode=0o644)
    (folder / "nowhere").symlink_to("gone")
    os.mkfifo(folder / "pipe")
    text = read(folder)
    warnings = [str(remark) for remark in text.warnings]
    assert warnings[0].startswith(f"{idle}:1: is not executable")
    assert f"chmod +x {idle}" in warnings[0]
    assert "cannot be read" in warnings[1]
    assert "not a regular file" in warnings[2]
    assert text.errors == ()
    assert set(warnings) <= {str(warning) for warning in load([text]).warnings}


def test_a_mounted_config_map(folder):
    """Links are followed, also to directories, and each file is found once."""
    inner = folder / "..1"
    bash(inner / "hook")
    bash(inner / "sub" / "other", "b")
    (folder / "..data").symlink_to("..1")
    (folder / "hook").symlink_to("..data/hook")
    (folder / "sub").symlink_to("..data/sub")
    (folder / "again").symlink_to("..data/sub")
    (folder / "round").symlink_to(".")
    found = find_hooks(folder)
    assert len(found.hooks) == 2


def test_a_directory_without_hooks_is_an_error(folder):
    """Most likely chmod +x is missing."""
    write(folder / "hook", BASH, mode=0o644)
    with pytest.raises(SourceError, match="contains no executable file; chmod"):
        read(folder)


@pytest.mark.parametrize("name", ["missing", "file"])
def test_a_path_that_is_no_directory_is_an_error(tmp_path, name):
    """Which names the path."""
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceError, match=f"hooks: .*{name}: cannot be read"):
        read(tmp_path / name)


def test_a_directory_with_too_many_files_is_an_error(folder, monkeypatch):
    """PollTimer through it each second would be expensive."""
    monkeypatch.setattr(discovery, "MAX_FILES", 3)
    for number in range(4):
        bash(folder / f"hook{number}")
    with pytest.raises(SourceError, match="contains more than 3 files"):
        read(folder)


# --------------------------------------------------------------------------------------------------- what they say


def test_hooks_of_any_language(folder):
    """In YAML from bash and in JSON from Python, they become one configuration per phase."""
    bash(folder / "one.sh", "one")
    write(folder / "sub/two.py", PYTHON.replace("PYTHON", sys.executable).replace("NAME", "two"))
    loaded = load([read(folder)])
    assert loaded.errors == ()
    assert [policy.name for policy in loaded.validating] == ["one.example.com"]
    assert [policy.name for policy in loaded.mutating] == ["two.example.com"]
    assert {worker.hook.path for worker in loaded.workers.values()} == {"one.sh", "sub/two.py"}


def test_the_configurations_name(folder):
    """shell-operator's option, with its suffix."""
    bash(folder / "hook")
    (policy,) = load([read(folder, configuration="mine")]).validating
    assert policy.configuration == "mine-hooks"


def test_config_runs_in_the_hooks_directory_without_secrets(folder, monkeypatch):
    """Relative files are found; the gateway's environment is not."""
    monkeypatch.setenv("ADMISSION_GATEWAY_REDIS", "redis://:password@host")
    (folder / "sub").mkdir()
    (folder / "sub" / "config.txt").write_text(CONFIG.replace("NAME", "a"))
    write(folder / "sub" / "hook", '#!/bin/bash\n[[ -z "$ADMISSION_GATEWAY_REDIS" ]] && cat config.txt\n')
    assert len(load([read(folder)]).validating) == 1


def test_a_relative_directory(folder, monkeypatch):
    """Is relative to the working directory."""
    bash(folder / "hook")
    monkeypatch.chdir(folder.parent)
    (worker,) = load([read(Path("hooks"))]).workers.values()
    assert worker.hook.directory == str(folder)


def test_hooks_and_policies_are_one_configuration(folder, tmp_path):
    """From files and from the directory."""
    bash(folder / "hook")
    policies = tmp_path / "more.yaml"
    policies.write_text("# nothing yet\n")
    assert len(load_configuration([policies], hooks=HookDirectory(folder)).validating) == 1
    assert len(load_configuration([], hooks=HookDirectory(folder)).validating) == 1


# -------------------------------------------------------------------------------------------- what is wrong with them


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#!/bin/bash\nexit 3\n", "exited with status 3"),
        ("#!/bin/bash\necho why >&2; exit 1\n", "it wrote to stderr: why"),
        ("#!/bin/bash\nkill -9 $$\n", "was ended by signal 9"),
        ("#!/bin/bash\necho 'a: ['\n", "neither YAML nor JSON"),
        ("#!/bin/bash\n", "nothing was printed"),
        ("#!/bin/bash\necho 'configVersion: v1'\n", "at least 2 members"),
        ("#!/no/such/interpreter\n", "interpreter"),
        ("no script at all\n", "exec format error"),
        ("#!/bin/bash\nyes\n", "wrote more than"),
    ],
)
def test_an_error_of_a_hook_is_fatal(folder, text, expected):
    """It names the hook and what to do; the other hooks are run all the same."""
    bash(folder / "a")
    broken = write(folder / "b", text)
    loaded = load([read(folder)])
    (error,) = loaded.errors
    assert str(error).startswith(str(broken))
    assert expected in str(error)
    assert loaded.fatal
    assert len(loaded.validating) == 1


def test_the_errors_of_all_hooks_are_reported_at_once(folder):
    """In one text."""
    for name in "abc":
        write(folder / name, "#!/bin/bash\nexit 1\n")
    assert len(errors_of(folder)) == 3


def test_a_hook_that_hangs_is_killed(folder):
    """With its child processes; the error has the time limit."""
    word = f"987{os.getpid()}"
    bash(folder / "hook", before=f"sleep {word} & sleep {word}")
    (error,) = errors_of(folder, seconds=0.5)
    assert "did not print its configuration within 0.5 s" in error
    assert running(word) == []


def test_background_processes_of_config_are_killed(folder):
    """In another session too; the printed configuration counts."""
    word = f"986{os.getpid()}"
    bash(folder / "hook", before=f"setsid sleep {word} >/dev/null 2>&1 & sleep {word} &")
    assert errors_of(folder) == []
    deadline = time.monotonic() + WAIT_SECONDS
    while running(word):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_name_that_is_not_utf_8_is_an_error(folder):
    """A policy could not name it."""
    path = os.fsencode(folder) + b"/\xff"
    bash(folder / "hook").rename(os.fsdecode(path))
    (error,) = errors_of(folder)
    assert "its name is not UTF-8" in error


def test_config_runs_are_limited(folder):
    """Each hook counts the others while it runs."""
    marks = folder.parent / "marks"
    marks.mkdir()
    count = f"touch {marks}/$$; ls {marks} | wc -l >> {folder.parent}/counts; sleep 0.1; rm {marks}/$$"
    for number in range(12):
        bash(folder / f"hook{number}", f"n{number}", before=count)
    assert len(load([read(folder)]).validating) == 12
    assert max(map(int, (folder.parent / "counts").read_text().split())) <= directory.CONFIG_RUNS


async def test_cancelling_leaves_no_process(folder):
    """When the cancellation returns, no hook runs."""
    word = f"985{os.getpid()}"
    bash(folder / "hook", before=f"sleep {word}")
    reading = asyncio.create_task(HookDirectory(folder).read())
    async with asyncio.timeout(WAIT_SECONDS):
        while not running(word):  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.02)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert running(word) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stopped_command_leaves_no_process(folder, number):
    """By any signal, while hooks print their configurations."""
    word = f"984{os.getpid()}"
    bash(folder / "hook", before=f"sleep {word}")
    program = (
        "import sys; from pathlib import Path; from gateway.sources.files import SourceError\n"
        "from gateway.hooks.source.directory import HookDirectory\n"
        "try: HookDirectory(Path(sys.argv[1])).read_now()\n"
        "except SourceError as error: print(error)"
    )
    started = subprocess.Popen([sys.executable, "-c", program, str(folder)], stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + WAIT_SECONDS
    while not running(word):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    started.send_signal(number)
    output, _ = started.communicate(timeout=WAIT_SECONDS)
    assert "stopped while" in output
    assert running(word) == []


# ------------------------------------------------------------------------------------------------------- changes


def looks(source, number=4):
    return [source.changed() for _ in range(number)]


@pytest.fixture
def source(folder):
    bash(folder / "hook")
    bash(folder / "lib" / "common.sh")
    watched = Source([], HookDirectory(folder))
    watched.read()
    return watched


def test_an_unchanged_directory_has_not_changed(source):
    """However often its state is compared."""
    assert looks(source) == [False] * 4


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: bash(folder / "new", "b"),
        lambda folder: (folder / "hook").unlink(),
        lambda folder: bash(folder / "hook", "other"),
        lambda folder: (folder / "hook").chmod(0o644),
        lambda folder: write(folder / "lib" / "common.sh", "other"),
        lambda folder: write(folder / "idle", "", mode=0o644),
    ],
    ids=["added", "removed", "written", "chmod", "library", "idle"],
)
def test_a_change_is_seen_when_it_is_complete(source, folder, change):
    """Of a hook, of a sourced file, of a mode."""
    change(folder)
    assert looks(source) == [False, True, True, True]


async def test_a_change_is_read(folder):
    """In the event loop."""
    bash(folder / "hook")
    source = Source([], HookDirectory(folder))
    before = await source.fetch()
    bash(folder / "hook", "other")
    after = await source.fetch()
    assert before != after
    assert b"other.example.com" in after[-1].content
    assert json.loads(after[-1].content)["kind"] == "List"


def test_hooks_that_change_all_the_time_are_an_error(folder):
    """A hook that rewrites itself whenever it runs."""
    bash(folder / "hook", before='cp "$0" "$0.new" && mv "$0.new" "$0"')
    with pytest.raises(SourceError, match="changed while the hooks printed"):
        read(folder)
