"""A hook describes itself: once for each content, and whatever is wrong with it is said."""

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


async def test_an_id_that_two_bindings_have_is_nobodys(tmp_path):
    """Both are asked for by their names only."""
    bindings = [{"name": name, "rules": RULES} for name in ("a.b.c", "a.b-c.d", "a-b.c.d")]
    found = await described(bash_hook(tmp_path, "", config={"configVersion": "v1", "kubernetesValidating": bindings}))
    assert {name for _, name in found.policies} == {"a.b.c", "a-b-c", "a.b-c.d", "a-b.c.d"}


async def test_the_version_is_the_contents(tmp_path):
    """The same text has the same version, elsewhere too; another text or other objects have another one."""
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


async def test_snapshots_are_for_those_that_ask_for_them(tmp_path):
    """By includeSnapshotsFrom, and by the group; a binding of neither is given none."""
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
async def test_a_broken_hook_says_what_is_wrong(tmp_path, text, mode, why):
    """And names itself."""
    path = tmp_path / "hook.sh"
    if text is not None:
        executable(path, text).chmod(mode)
    with pytest.raises(HookError) as told:
        await described(path)
    assert why in str(told.value)
    assert str(path) in str(told.value)


async def test_one_that_does_not_end_is_ended(tmp_path):
    """After its time."""
    with pytest.raises(HookError, match=r"did not print its configuration within 0\.5 s"):
        await described(executable(tmp_path / "hook.sh", "#!/bin/bash\nsleep 1e6\n"), config_seconds=0.5)


async def test_one_that_changes_meanwhile_is_not_described(tmp_path):
    """Nobody knows which content has said what."""
    text = f"#!/bin/bash\necho >> {tmp_path}/hook.sh\ncat <<'END'\n{json.dumps(CONFIG)}\nEND\n"
    with pytest.raises(HookChangingError):
        await described(executable(tmp_path / "hook.sh", text))


def test_a_stamp_tells_every_change(tmp_path):
    """Of content, of permission, by another file in its place; and that there is none."""
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


def test_a_relative_path_begins_beside_its_configuration():
    """As all paths do."""
    assert str(hook_path("hooks/a.sh", "/etc/policies")) == "/etc/policies/hooks/a.sh"
    assert str(hook_path("../a.sh", "/etc/policies")) == "/etc/a.sh"
    assert str(hook_path("/hooks/a.sh", "/etc/policies")) == "/hooks/a.sh"


async def test_a_pipe_is_no_hook(tmp_path):
    """It is said, and nothing waits for somebody to write to it."""
    os.mkfifo(tmp_path / "hook.sh", 0o755)
    with pytest.raises(HookError, match=r"hook\.sh cannot be read: it is no regular file"):
        await described(tmp_path / "hook.sh")
