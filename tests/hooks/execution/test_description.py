"""Descriptions of hooks, and their errors."""

import json
import os

import pytest

from gateway.hooks.execution.description import HookChangingError, HookError, describe, stamp
from gateway.hooks.execution.hook_file import hook_path
from gateway.hooks.execution.runner import HookRunner
from gateway.policies.model import Phase
from tests.hooks.scripts import CONFIG, MUTATING, RULES, VALIDATING, bash_hook, executable, limits, python_hook

pytestmark = pytest.mark.integration

NAMESPACE = b'{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}'


def described(path, *, objects=(), **fields):
    return describe(path, objects, HookRunner(limits(**fields)))


@pytest.mark.parametrize("kind", [bash_hook, python_hook], ids=["bash", "python"])
async def test_a_hooks_policies_are_its_bindings(tmp_path, kind):
    """By their names, and by the ids under which shell-operator serves them."""
    found = await described(kind(tmp_path, "pass"))
    assert found.policies.keys() == {
        (Phase.VALIDATING, VALIDATING),
        (Phase.VALIDATING, "judge-test-example-com"),
        (Phase.MUTATING, MUTATING),
        (Phase.MUTATING, "change-test-example-com"),
    }
    assert found.policies[Phase.VALIDATING, "judge-test-example-com"].name == VALIDATING


async def test_an_ambiguous_id_names_no_policy(tmp_path):
    """Two bindings with the same id are called by their names only."""
    bindings = [{"name": name, "rules": RULES} for name in ("a.b.c", "a.b-c.d", "a-b.c.d")]
    found = await described(bash_hook(tmp_path, "", config={"configVersion": "v1", "kubernetesValidating": bindings}))
    assert {name for _, name in found.policies} == {"a.b.c", "a-b-c", "a.b-c.d", "a-b.c.d"}


async def test_the_version_is_the_contents(tmp_path):
    """Equal files have the same version, in any directory; another text or other objects change it."""
    one = await described(bash_hook(tmp_path / "one", "echo"))
    same = await described(bash_hook(tmp_path / "two", "echo"))
    versions = {
        one.version,
        (await described(bash_hook(tmp_path / "one", "echo 2"))).version,
        (await described(tmp_path / "two" / "hook.sh", objects=[NAMESPACE])).version,
        (await described(tmp_path / "two" / "hook.sh", objects=[NAMESPACE] * 2)).version,
    }
    assert one.version == same.version
    assert len(versions) == 4


async def test_a_binding_gets_the_snapshots_that_it_includes(tmp_path):
    """By includeSnapshotsFrom and by its group; a binding without either gets none."""
    config = {
        "configVersion": "v1",
        "kubernetes": [
            {"name": "namespaces", "kind": "Namespace"},
            {"name": "pods", "kind": "Pod", "group": "g"},
            {"name": "unused", "kind": "Namespace"},
        ],
        "kubernetesValidating": [
            {"name": "a.b.c", "rules": RULES, "includeSnapshotsFrom": ["namespaces"]},
            {"name": "d.e.f", "rules": RULES, "group": "g", "includeSnapshotsFrom": ["namespaces"]},
            {"name": "g.h.i", "rules": RULES},
        ],
    }
    found = await described(bash_hook(tmp_path, "", config=config), objects=[NAMESPACE])
    namespaces = [{"object": json.loads(NAMESPACE)}]
    assert {name: json.loads(text) for (_, name), text in found.snapshots.items()} == {
        "a.b.c": {"namespaces": namespaces},
        "d.e.f": {"namespaces": namespaces, "pods": []},
    }


@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [
        (None, 0, "there is no such file"),
        ("#!/bin/bash\n", 0o644, "may not be executed"),
        ("#!/nowhere/bash\n", 0o755, "interpreter"),
        ("#!/bin/bash\nexit 3\n", 0o755, "exited with status 3 when called with --config"),
        ("#!/bin/bash\necho no luck >&2; exit 3\n", 0o755, "; it wrote to stderr: no luck"),
        ("#!/bin/bash\nkill -9 $$\n", 0o755, "was ended by signal 9"),
        ("#!/bin/bash\nexit 0\n", 0o755, "printed an invalid configuration"),
        ("#!/bin/bash\necho '{'\n", 0o755, "printed an invalid configuration"),
        ("#!/bin/bash\necho 'configVersion: v2'\n", 0o755, "configVersion"),
        ("#!/bin/bash\nyes\n", 0o755, "wrote more than 1048576 bytes"),
    ],
)
async def test_the_error_of_a_hook_names_it_and_the_reason(tmp_path, text, mode, why):
    """For each way in which a hook can fail to describe itself."""
    path = tmp_path / "hook.sh"
    if text is not None:
        executable(path, text).chmod(mode)
    with pytest.raises(HookError) as error:
        await described(path)
    assert why in str(error.value)
    assert str(path) in str(error.value)


async def test_a_hook_that_hangs_is_stopped(tmp_path):
    """At its time limit."""
    with pytest.raises(HookError, match=r"did not print its configuration within 0\.5 s"):
        await described(executable(tmp_path / "hook.sh", "#!/bin/bash\nsleep 1e6\n"), config_seconds=0.5)


async def test_a_hook_that_changes_during_its_description_is_not_described(tmp_path):
    """It is unknown which content printed the configuration."""
    text = f"#!/bin/bash\necho >> {tmp_path}/hook.sh\ncat <<'END'\n{json.dumps(CONFIG)}\nEND\n"
    with pytest.raises(HookChangingError):
        await described(executable(tmp_path / "hook.sh", text))


def test_every_change_of_a_file_changes_its_stamp(tmp_path):
    """Of content, of mode, by another file in its place; a missing file has none."""
    path = tmp_path / "hook"
    stamps = [stamp(path)]
    path.write_text("a")
    stamps.append(stamp(path))
    path.chmod(0o755)
    stamps.append(stamp(path))
    other = tmp_path / "other"
    other.write_text("b")
    os.utime(other, ns=(0, path.stat().st_mtime_ns))
    other.chmod(0o755)
    other.replace(path)
    stamps.append(stamp(path))
    assert len(set(stamps)) == 4
    assert stamps[0] is None
    assert stamp(path) == stamps[-1]


def test_a_relative_path_begins_in_the_directory_of_its_configuration():
    """An absolute path is unchanged."""
    assert str(hook_path("hooks/a.sh", "/etc/policies")) == "/etc/policies/hooks/a.sh"
    assert str(hook_path("../a.sh", "/etc/policies")) == "/etc/a.sh"
    assert str(hook_path("/hooks/a.sh", "/etc/policies")) == "/hooks/a.sh"


async def test_a_pipe_is_no_hook(tmp_path):
    """It is an error, and opening it does not block."""
    os.mkfifo(tmp_path / "hook.sh", 0o755)
    with pytest.raises(HookError, match=r"hook\.sh cannot be read: it is no regular file"):
        await described(tmp_path / "hook.sh")
