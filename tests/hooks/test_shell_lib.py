"""The library that shell hooks source: shell-operator's own examples run with it, and the functions do what they did
there.
"""

import json
import os
import subprocess
from importlib.resources import files

import pytest

from tests.hooks.scripts import executable, needs_jq

pytestmark = [pytest.mark.integration, needs_jq]

LIBRARY = files("gateway.hooks").joinpath("shell_lib.sh")

REQUEST = {
    "object": {
        "spec": {"image": "repo.example.com/a", "replicas": 3},
        "metadata": {"labels": {"app.k8s.io/name": "x"}},
    },
    "dry-run": False,
    "list": [{"n": "a"}, {"n": "b"}],
    "nothing": None,
    "yes": True,
}


@pytest.fixture
def hook(tmp_path):
    """Run a hook that sources the library; returns the process and the answer."""

    def ran(body, *arguments, **fields):
        script = executable(tmp_path / "hook.sh", f'#!/usr/bin/env bash\nsource "{LIBRARY}"\n{body}\nhook::run "$@"\n')
        context = {"binding": "a.example.com", "type": "Validating", "review": {"request": REQUEST}} | fields
        contexts = fields.get("contexts", [context])
        (tmp_path / "context.json").write_text(json.dumps(contexts))
        (tmp_path / "response").touch()
        variables = {
            "BINDING_CONTEXT_PATH": str(tmp_path / "context.json"),
            "VALIDATING_RESPONSE_PATH": str(tmp_path / "response"),
        }
        done = subprocess.run(
            [script, *arguments], capture_output=True, text=True, env=os.environ | variables, check=False, timeout=60
        )
        done.response = (tmp_path / "response").read_text()
        return done

    return ran


def test_config_prints_the_configuration(hook):
    """And calls no handler."""
    done = hook("__config__() { echo 'configVersion: v1'; }\n__main__() { echo main; }", "--config")
    assert (done.stdout, done.returncode) == ("configVersion: v1\n", 0)


@pytest.mark.parametrize(
    ("fields", "called"),
    [
        ({"type": "Validating"}, "validating"),
        ({"type": "Mutating"}, "mutating"),
        ({"type": "Validating", "binding": "b.example.com"}, "main"),
        ({"type": "Schedule"}, "schedule"),
        ({"type": "Group"}, "group"),
        ({"type": "Event", "watchEvent": "Added"}, "added"),
        ({"type": "Event", "watchEvent": "Modified"}, "added_or_modified"),
        ({"type": "Event", "watchEvent": "Deleted"}, "kubernetes"),
        ({"type": "Synchronization"}, "kubernetes"),
        ({"type": "Conversion", "fromVersion": "g/v1", "toVersion": "v2"}, "conversion"),
        ({"type": None, "binding": "onStartup"}, "startup"),
    ],
)
def test_the_handler_of_the_binding_is_called(hook, fields, called):
    """The most specific one that is defined; else __main__."""
    handlers = {
        "__on_validating::a.example.com": "validating",
        "__on_mutating::a.example.com": "mutating",
        "__on_schedule::a.example.com": "schedule",
        "__on_group::a.example.com": "group",
        "__on_kubernetes::a.example.com::added": "added",
        "__on_kubernetes::a.example.com::added_or_modified": "added_or_modified",
        "__on_kubernetes::a.example.com": "kubernetes",
        "__on_conversion::a.example.com::g.v1::v2": "conversion",
        "__on_startup": "startup",
        "__main__": "main",
    }
    body = "\n".join(f"function {name}() {{ echo {text}; }}" for name, text in handlers.items())
    assert hook(body, **fields).stdout == f"{called}\n"


def test_a_handler_knows_its_binding(hook):
    """By shell-operator's variables."""
    body = '__main__() { echo "$BINDING_CONTEXT_CURRENT_BINDING $BINDING_CONTEXT_CURRENT_INDEX"; }'
    assert hook(body, contexts=[{"binding": "x", "type": "Group"}, {"type": "Group"}]).stdout == "x 0\nunknown 1\n"


def test_without_a_handler_the_hook_fails(hook):
    """The error lists the handlers that it looked for."""
    done = hook(":")
    assert done.returncode == 1
    assert "__on_validating::a.example.com __main__" in done.stderr


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("context::jq -r .review.request.object.spec.image", "repo.example.com/a"),
        ("context::jq -r --arg i 1 '.review.request.list[$i|tonumber].n'", "b"),
        ("context::global::jq -r '.[0].binding'", "a.example.com"),
        ("context::get review.request.object.spec.replicas", "3"),
        ("context::get review.request.list.1.n", "b"),
        ("context::get 'review.request.list[0].n'", "a"),
        ("context::get review.request.dry-run", "false"),
        ("context::get 'review.request.object.metadata.labels.\"app.k8s.io/name\"'", "x"),
        ("context::get \"review.request.object.metadata.labels.'app.k8s.io/name'\"", "x"),
        ("context::get review.request.nope", "null"),
        ("context::get --required binding", "a.example.com"),
    ],
)
def test_the_context_is_read(hook, command, output):
    """By jq, or by a path."""
    done = hook(f"__main__() {{ {command}; }}")
    assert (done.stdout, done.returncode) == (f"{output}\n", 0), done.stderr


@pytest.mark.parametrize(
    ("command", "holds"),
    [
        ("context::has review.request.nothing", True),
        ("context::has review.request.nope", False),
        ("context::has binding", True),
        ("context::has review.request.list.1", True),
        ("context::has review.request.list.2", False),
        ("context::has review.request.dry-run", True),
        ("context::has 'review.request.object.metadata.labels.\"app.k8s.io/name\"'", True),
        ("context::is_true review.request.yes", True),
        ("context::is_true review.request.dry-run", False),
        ("context::is_false review.request.dry-run", True),
        ("context::is_null review.request.nothing", True),
        ("context::is_null review.request.yes", False),
        ("context::get --required review.nope", False),
    ],
)
def test_conditions_on_the_context_are_exit_statuses(hook, command, holds):
    """context::has, is_true, is_false, is_null."""
    assert hook(f"__main__() {{ if {command} >&2; then echo yes; else echo no; fi; }}").stdout == (
        "yes\n" if holds else "no\n"
    )


def test_an_error_ends_the_hook_and_says_where(hook):
    """As with set -e; the traceback has file, line and function."""
    done = hook("inner() { false; }\n__main__() { inner; echo unreached; }")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback (most recent call last):" in done.stderr
    assert 'hook.sh", line 3, in inner\n    inner() { false; }' in done.stderr
    assert "Exiting with status 1" in done.stderr


@pytest.mark.parametrize("body", ["echo $UNSET_VARIABLE", "x=$(false); echo unreached", "false | true", "ls /nope*"])
def test_the_shells_options_are_shell_operators(hook, body):
    """errexit, in command substitutions too; nounset, pipefail, failglob."""
    done = hook(f"__main__() {{ {body}; }}")
    assert done.returncode != 0
    assert "unreached" not in done.stdout


def test_shell_operators_validating_example_runs_unchanged(hook):
    """examples/204-validating-webhook, without its manifests."""
    body = """
function __on_validating::a.example.com() {
  image=$(context::jq -r '.review.request.object.spec.image')
  echo "Got image: $image"
  if [[ $image == repo.example.com* ]] ; then
    cat <<EOF > $VALIDATING_RESPONSE_PATH
{"allowed":true}
EOF
  else
    cat <<EOF > $VALIDATING_RESPONSE_PATH
{"allowed":false, "message":"Only images from repo.example.com are allowed"}
EOF
  fi
}
"""
    done = hook(body)
    assert (done.returncode, done.stdout) == (0, "Got image: repo.example.com/a\n")
    assert json.loads(done.response) == {"allowed": True}
