"""``check``: all errors at once, and an explanation of the configuration."""

import json
import os

import pytest
import yaml
from click.testing import CliRunner

from gateway.cli.main import main

GROUP = "admission-gateway.dev/v1alpha1"
RULES = [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["services"]}]


def policy(name, **fields):
    """An entry of ``policies``."""
    return {"name": f"{name}.example.com", "worker": "w", "rules": RULES, "sideEffects": "None"} | fields


@pytest.fixture
def written(tmp_path):
    """A file with a Worker and these policies."""

    def write(*mutating, validating=()):
        worker = {"metadata": {"name": "w"}, "kind": "Worker", "spec": {"grpc": {"target": "dns:///localhost:50051"}}}
        documents = [worker] + [
            {"kind": f"{phase}PolicyConfiguration", "metadata": {"name": "team"}, "policies": list(policies)}
            for phase, policies in (("Mutating", mutating), ("Validating", validating))
        ]
        path = tmp_path / "policies.yaml"
        path.write_text(yaml.safe_dump_all([{"apiVersion": GROUP} | each for each in documents], sort_keys=False))
        return path

    return write


def report(run, *paths, code=0):
    """The JSON report."""
    done = run("check", *paths, "-o", "json")
    assert (done.code, done.err) == (code, "")
    return json.loads(done.out)


def test_the_meaning(run, written):
    """A sound configuration: its calls in order, who is in each, why they are apart, how long they may take; exit 0."""
    path = written(
        policy("a", timeoutSeconds=1),
        policy("b", timeoutSeconds=2),
        policy("c", failurePolicy="Ignore", timeoutSeconds=0.5, reinvocationPolicy="IfNeeded"),
        policy("i", isolate=True, timeoutSeconds=4),
        validating=[policy("v", timeoutSeconds=3, mode="audit"), policy("w", timeoutSeconds=7, mode="warn")],
    )
    done = run("check", path)
    assert (done.code, done.err) == (0, "")
    assert (
        done.out
        == """\
0 errors, 0 warnings

Mutating: 3 calls, one after another
  chain.a.example.com  Fail, Equivalent, reinvocation Never; timeoutSeconds 4 for 3 s
      rules     CREATE of services (v1)
      policies  team/a.example.com
                team/b.example.com
  chain.c.example.com  Ignore, Equivalent, reinvocation IfNeeded; timeoutSeconds 2 for 0.5 s
      rules     CREATE of services (v1)
      policies  team/c.example.com
      apart     team/c.example.com: failurePolicy: Ignore, where team/b.example.com has Fail
  i.example.com  Fail, Equivalent, reinvocation Never, isolated; timeoutSeconds 5 for 4 s
      rules     CREATE of services (v1)
      policies  team/i.example.com
  worst case 7.5 s; kube-apiserver waits up to 11 s

Validating: 1 call
  group.v.example.com  Ignore, Equivalent, not enforced; timeoutSeconds 8 for 7 s
      rules     CREATE of services (v1)
      policies  team/v.example.com
                team/w.example.com
  worst case 7 s; kube-apiserver waits up to 8 s
"""
    )


def test_all_errors_at_once(run, written):
    """Each error is a line FILE:LINE: PATH: MESSAGE on the output, before the explanation; exit 1."""
    path = written(policy("a", rules=[{}]), policy("b", failurePolicy="Maybe", sideEffects="Some"))
    done = run("check", path)
    lines = done.out.splitlines()
    errors = [line.split(": ", 1)[1] for line in lines if line.startswith(f"{path}:")]
    assert (done.code, done.err) == (1, "")
    assert 'policies[1].failurePolicy: Unsupported value: "Maybe": supported values: "Fail", "Ignore"' in errors
    assert "policies[0].rules[0].operations: Required value" in errors
    assert f"{len(errors)} errors, 0 warnings" in lines
    assert sum(line.endswith("has errors, so each call fails") for line in lines) == 2


def test_native_errors(run, tmp_path):
    """A native configuration's errors are in Kubernetes' words, with Kubernetes' paths."""
    path = tmp_path / "native.yaml"
    path.write_text(
        "apiVersion: admissionregistration.k8s.io/v1\n"
        "kind: ValidatingWebhookConfiguration\n"
        "metadata: {name: images}\n"
        "webhooks:\n"
        "- name: images.example.com\n"
        "  clientConfig: {url: 'https://images.example.com'}\n"
        "  sideEffects: None\n"
        "  admissionReviewVersions: [v1]\n"
        "  rules: [{apiGroups: [''], apiVersions: [v1], resources: [pods]}]\n"
    )
    done = run("check", path)
    assert done.out.splitlines()[0] == f"{path}:9: webhooks[0].rules[0].operations: Required value"
    assert done.code == 1


def test_the_policies_are_not_known(run, tmp_path):
    """If the policies are not known, the report has no calls; in JSON, phases is null; exit 1."""
    path = tmp_path / "policies.yaml"
    path.write_text("kind: Worker\n---\nkind: Unknown\napiVersion: v1\n")
    done = run("check", path)
    assert "the policies are not known" in done.out
    assert "call" not in done.out
    document = report(run, path, code=1)
    assert (document["fatal"], document["phases"]) == (True, None)


def test_the_report(run, written):
    """The JSON report is the documented one: findings, phases, entries, and why they are apart."""
    path = written(
        policy("a", timeoutSeconds=1, settings={"x": 1}),
        policy("b", rules=[RULES[0] | {"apiVersions": ["v2"]}]),
        policy("none", rules=[]),
        policy("wrong", matchPolicy="Never"),
    )
    document = report(run, path, code=1)
    assert {key: document[key] for key in ("apiVersion", "kind", "valid", "fatal", "idle")} == {
        "apiVersion": "admission-gateway.dev/check/v1alpha1",
        "kind": "ConfigurationCheck",
        "valid": False,
        "fatal": False,
        "idle": ["team/none.example.com"],
    }
    (error,) = document["errors"]
    assert error["message"] == 'Unsupported value: "Never": supported values: "Equivalent", "Exact"'
    assert (error["file"], error["path"]) == (str(path), "policies[3].matchPolicy")
    assert [warning["path"] for warning in document["warnings"]] == ["policies[2].rules"]
    assert document["phases"]["validating"] == {"calls": 0, "worstSeconds": 0, "waitSeconds": 0, "entries": []}
    first, second, third = document["phases"]["mutating"]["entries"]
    assert first == {
        "name": "chain.a.example.com",
        "path": "/mutate/chain.a.example.com/e3848d15",
        "isolated": False,
        "policies": [
            {
                "configuration": "team",
                "index": 0,
                "name": "a.example.com",
                "worker": "w",
                "policy": "a",
                "mode": "enforce",
                "timeoutSeconds": 1,
                "inputs": None,
                "writes": None,
                "cache": None,
                "onConflict": "warn",
                "shadow": None,
                "fault": None,
            }
        ],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "reinvocationPolicy": "Never",
        "sideEffects": "None",
        "enforcing": True,
        "rules": [RULES[0] | {"scope": "*"}],
        "worstSeconds": 1,
        "timeoutSeconds": 2,
        "apart": None,
    }
    assert second["apart"] == {
        "policy": "team/b.example.com",
        "other": "team/a.example.com",
        "field": "rules",
        "value": "v2",
        "otherValue": "v1",
        "resource": "services",
        "operation": "CREATE",
    }
    assert third["policies"][0]["fault"].startswith("policies[3].matchPolicy: Unsupported value")


def test_scopes(run, written):
    """A policy's inputs, writes and cache are in the text and in the report if they are set."""
    path = written(
        policy("a"),
        policy("b", inputs=[], writes=[f"/data/{name}" for name in "abcde"], onConflict="deny"),
        policy(
            "c", inputs=["/object/metadata/labels", "/object/data"], cache={"ttl": "1h30m", "staleIfError": "500ms"}
        ),
        validating=[policy("v", inputs=["/operation"], cache={"ttl": "5m"})],
    )
    lines = run("check", path).out.splitlines()
    assert lines[lines.index("      policies  team/a.example.com") :][:5] == [
        "      policies  team/a.example.com",
        "                team/b.example.com",
        "                  sees nothing; writes /data/a, /data/b, /data/c and 2 more",
        "                team/c.example.com",
        "                  sees /object/data, /object/metadata/labels; cached 5400 s, 0.5 s more if its worker fails",
    ]
    assert "                  sees /operation; cached 300 s" in lines
    phases = report(run, path)["phases"]
    found = [
        [each[field] for field in ("inputs", "writes", "cache", "onConflict")]
        for phase in ("mutating", "validating")
        for each in phases[phase]["entries"][0]["policies"]
    ]
    assert found == [
        [None, None, None, "warn"],
        [[], [f"/data/{name}" for name in "abcde"], None, "deny"],
        [["/object/data", "/object/metadata/labels"], None, {"ttlSeconds": 5400, "staleIfErrorSeconds": 0.5}, "warn"],
        [["/operation"], None, {"ttlSeconds": 300, "staleIfErrorSeconds": 0}, None],
    ]


def test_shadows(run, written):
    """The report names a policy's shadow; an error in it is reported, and the policy has no fault."""
    path = written(
        policy("a", shadow={"worker": "w", "settings": {"x": 1}}),
        policy("b", inputs=[], shadow={"worker": "w", "policy": "next"}),
    )
    lines = run("check", path).out.splitlines()
    assert "                  compared with worker w" in lines
    assert "                  sees nothing; compared with worker w, policy next" in lines
    entry = report(run, path)["phases"]["mutating"]["entries"][0]
    assert [each["shadow"] for each in entry["policies"]] == [
        {"worker": "w", "policy": "a"},
        {"worker": "w", "policy": "next"},
    ]
    document = report(run, written(policy("a", shadow={"worker": "nobody"})), code=1)
    (wrong,) = document["phases"]["mutating"]["entries"][0]["policies"]
    assert (wrong["shadow"], wrong["fault"]) == (None, None)
    assert [error["path"] for error in document["errors"]] == ["policies[0].shadow.worker"]


def test_validating_has_no_reinvocation(run, written):
    """In the report, reinvocationPolicy of a validating entry is null."""
    (entry,) = report(run, written(validating=[policy("v")]))["phases"]["validating"]["entries"]
    assert entry["reinvocationPolicy"] is None


def test_several_paths(run, written, tmp_path):
    """Files and directories make one configuration together, as they do for serve."""
    path = written(policy("a"))
    more = tmp_path / "more"
    more.mkdir()
    (more / "b.yaml").write_text(path.read_text().replace("team", "other").replace("name: w\n", "name: w2\n"))
    assert report(run, path, more)["phases"]["mutating"]["entries"][0]["policies"][0]["configuration"] == "other"


def test_the_standard_input_is_a_file_too(written, tmp_path):
    """``kubectl get ... -o yaml | admission-gateway check -``, beside files and alone."""
    text = written(policy("a"), policy("b", matchPolicy="Never")).read_text()
    for more in ([], [str(written())]):
        done = CliRunner().invoke(main, ["check", "-", *more, "-o", "json"], input=text)
        assert done.exit_code == 1
        errors = json.loads(done.stdout)["errors"]
        assert "policies[1].matchPolicy" in [error["path"] for error in errors if error["file"] == "<stdin>"]


@pytest.mark.parametrize("arguments", [["missing.yaml"], []])
def test_what_cannot_be_checked(run, tmp_path, arguments):
    """A file that is not there, or no file at all, is exit 2, with nothing on the output."""
    done = run("check", *(tmp_path / name for name in arguments))
    assert (done.code, done.out) == (2, "")
    assert done.err


def test_no_colour_in_a_file(run_process, written):
    """What goes to a file or a pipe has no colours."""
    done = run_process("check", written(policy("a", matchPolicy="Never"), policy("none", rules=[])))
    assert "\x1b" not in done.out
    assert "warning: " in done.out


def worker_file(folder, spec):
    """A file with one Worker."""
    path = folder / "worker.yaml"
    path.write_text(json.dumps({"apiVersion": GROUP, "kind": "Worker", "metadata": {"name": "w"}, "spec": spec}))
    return path


KEY = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "No such file or directory; create it with `openssl rand -base64 32`, or correct the path; until"),
        ("", "it contains no key; create one with"),
        ("secret", "line 1: expected base64 of 32 bytes"),
        (KEY, ""),
    ],
)
def test_the_key_file_of_a_queue(run, tmp_path, content, expected):
    """A file that is missing, or contains no key, is a warning without the file's content."""
    path = worker_file(tmp_path, {"queue": {"stream": "s", "keyFile": "queue.key"}})
    if content is not None:
        (tmp_path / "queue.key").write_text(content)
    warnings = report(run, path)["warnings"]
    assert [each["path"] for each in warnings] == bool(expected) * ["spec.queue.keyFile"]
    assert all(f"queue key file {tmp_path / 'queue.key'}" in each["message"] for each in warnings)
    assert all(expected in each["message"] and "secret" not in each["message"] for each in warnings)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (
            None,
            "No such file or directory, so the worker cannot be started; install the hook there, or correct the path",
        ),
        (0o644, "not executable, so the worker cannot be started; run chmod +x"),
        (0o755, ""),
    ],
)
def test_the_file_of_a_hook(run, tmp_path, mode, expected):
    """A file that is missing or not executable is a warning."""
    path = worker_file(tmp_path, {"hook": {"path": "hook.sh"}})
    if mode is not None:
        (tmp_path / "hook.sh").write_text("#!/bin/sh\n")
        (tmp_path / "hook.sh").chmod(mode)
    warnings = report(run, path)["warnings"]
    assert [each["path"] for each in warnings] == bool(expected) * ["spec.hook.path"]
    assert all(each["message"].startswith(f"hook {tmp_path / 'hook.sh'}: {expected}") for each in warnings)


@pytest.mark.parametrize("name", ["queue", "hook"])
def test_what_is_no_file_is_not_waited_for(run, tmp_path, name):
    """A pipe would be, for ever."""
    os.mkfifo(tmp_path / "pipe")
    specs = {"queue": {"queue": {"stream": "s", "keyFile": "pipe"}}, "hook": {"hook": {"path": "pipe"}}}
    (warning,) = report(run, worker_file(tmp_path, specs[name]))["warnings"]
    assert "not a regular file" in warning["message"]


COMMANDS = {
    "no-such-program-here": 'program "no-such-program-here" is not on the PATH, so the worker cannot be started',
    "./nothing": "nothing: No such file or directory, so the worker cannot be started; build it, or correct the path",
    "./plain": "plain: not executable, so the worker cannot be started; run chmod +x ",
}


def started_by(tmp_path, *command):
    """A file with one Worker that is started by a command."""
    worker = {
        "apiVersion": GROUP,
        "kind": "Worker",
        "metadata": {"name": "w"},
        "spec": {"grpc": {"command": list(command)}},
    }
    path = tmp_path / "worker.yaml"
    path.write_text(yaml.safe_dump(worker))
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_command_is_reported(run, tmp_path, command):
    """It may come later, or be only where the gateway runs: so it is a warning."""
    (tmp_path / "plain").write_text("")
    (warning,) = report(run, started_by(tmp_path, command))["warnings"]
    assert warning["path"] == "spec.grpc.command[0]"
    assert COMMANDS[command] in warning["message"]


def test_a_command_is_looked_for_as_it_is_started(run, tmp_path):
    """A path from the file's directory, a name on the PATH, and python beside the gateway's own."""
    program = tmp_path / "program"
    program.write_text("")
    program.chmod(0o755)
    for command in ("./program", str(program), "sh", "python"):
        assert report(run, started_by(tmp_path, command, "-x"))["warnings"] == []


def test_hints_are_a_part_of_their_own(run, written):
    """In JSON the message is Kubernetes' alone; in text both are one line."""
    path = written(policy("a", worker="x"))
    (error,) = report(run, path, code=1)["errors"]
    assert (error["message"], error["hint"]) == ('Not found: "x"', 'known workers: "w"')
    assert 'policies[0].worker: Not found: "x"; known workers: "w"' in run("check", path).out


def test_an_expressions_error_is_shown_below_it(run, written):
    """The compiler's message, on several lines: the caret is below the error."""
    path = written(policy("a", matchConditions=[{"name": "a", "expression": "object.spec =="}]))
    lines = run("check", path).out.splitlines()
    assert lines[1:3] == ["     | object.spec ==", "     | ..............^"]
