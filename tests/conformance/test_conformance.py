"""Every recorded outcome of the real API server's code, against the gateway's: none differs but deliberately."""

import json
from pathlib import Path

import pytest

from tests.conformance.__main__ import main
from tests.conformance.cases import Case
from tests.conformance.chains import KIND_CHANGE, PATCH_FAILURE
from tests.conformance.hook_conversations import DENIED_PATCH
from tests.conformance.running import run_case, run_file

CASES = Path(__file__).parent / "cases"
SUITES = Path(__file__).parents[2].parent / "shared" / "suites"

FILES = {
    "oracle_match.jsonl": ("matching", 302),
    "oracle_mutating_chain.jsonl": ("chain", 129),
    "cel_matchconditions_env.jsonl": ("condition", 124),
    "json_patch_quirks.jsonl": ("patch", 40),
    "shell_operator_hook_config.jsonl": ("hook_config", 20),
    "shell_operator_http_io.jsonl": ("hook_http", 8),
    "shell_operator_response_file.jsonl": ("hook_answer", 10),
}

DIFFERENCES = {
    PATCH_FAILURE: {45, 46, 50, 59, 67, 102, 116, 121, 160, 182, 205},
    KIND_CHANGE: {117},
}
"""Which cases show which deliberate difference (docs/differences.md): exactly these. In 34 cases kube-apiserver cannot
apply a patch; under failurePolicy Fail both refuse with 500 InternalError, and that is no difference."""


RUN_HOOKS = {"hook_http"}
"""Kinds of cases that run programs."""


@pytest.mark.parametrize(
    ("name", "kind", "count"),
    [
        pytest.param(name, *about, marks=[pytest.mark.integration] if about[0] in RUN_HOOKS else [])
        for name, about in FILES.items()
    ],
)
def test_every_case_has_kubernetes_outcome(name, kind, count):
    """Whatever is not a deliberate difference is the same."""
    lines = list(run_file(CASES / name))
    assert [line.kind for line in lines] == [kind] * count
    assert [line.as_json() for line in lines if not line.ok] == []


def test_the_deliberate_differences_are_the_listed_ones():
    """No other case shows one, and none of these has stopped to show it."""
    found = {}
    for line in run_file(CASES / "oracle_mutating_chain.jsonl"):
        if line.result.difference:
            found.setdefault(line.result.difference, set()).add(line.id)
    assert found == DIFFERENCES


@pytest.mark.integration
def test_of_a_hooks_answer_only_a_denials_patch_is_missing():
    """The API server reads no patch of a denial, so it is not repeated; all else is as shell-operator answers it."""
    lines = list(run_file(CASES / "shell_operator_http_io.jsonl"))
    assert {line.id: line.result.difference for line in lines if line.result.difference} == {7: DENIED_PATCH}


@pytest.mark.parametrize("name", ["json_patch_tests.json", "json_patch_spec_tests.json"])
def test_the_public_suite_runs_too(name):
    """The JSON Patch suite is read in its own format, and all of it is right."""
    if not (SUITES / name).exists():
        pytest.skip("the public suites are not at hand")
    lines = list(run_file(SUITES / name))
    assert len(lines) > 10
    assert [line.as_json() for line in lines if not line.result.agrees] == []


def test_the_simple_tests_of_cel_run_too():
    """Of google/cel-spec, all that Kubernetes' own environment answers as the specification says."""
    if not (SUITES / "cel_spec.json").exists():
        pytest.skip("the public suites are not at hand")
    lines = list(run_file(SUITES / "cel_spec.json"))
    assert len(lines) == 654
    assert [line.as_json() for line in lines if not line.result.agrees] == []


@pytest.mark.parametrize(
    ("members", "agrees"),
    [
        ({"expr": "[1, 2].map(x, x * 2)", "value": {"listValue": {"values": [{"int64Value": "2"}]}}}, False),
        ({"expr": "1 + 1", "value": {"doubleValue": 2}}, False),
        ({"expr": "1 + 1", "value": {"int64Value": "2"}}, True),
        ({"expr": "1 / 0", "value": {"int64Value": "2"}}, False),
        ({"expr": "1 / 0", "evalError": {}}, True),
        ({"expr": "1", "evalError": {}}, False),
        ({"expr": "double('NaN') // not equal to itself", "value": {"doubleValue": "NaN"}}, True),
    ],
)
def test_a_value_is_compared_with_its_type(members, agrees):
    """The question that is made of a value can be answered with no."""
    line = run_case(Case(id=1, members=members | {"section": "own"}, common={}))
    assert line.result.agrees is agrees, line.as_json()


# ----------------------------------------------------------------------------------------------- the command


def written(tmp_path, content):
    """A file of cases, as one document."""
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(content))
    return str(path)


def lined(tmp_path, *lines):
    """A file of cases, as lines."""
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return str(path)


RIGHT = {"id": 7, "doc": "{}", "patch": "[]", "kubernetes": "ok", "observed": {"output": "{}"}}


NODE = {"kind": {"group": "", "version": "v1", "kind": "Node"}, "resource": {"version": "v1", "resource": "nodes"}}
ALL = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
SELECT_ALL = {"namespaceSelector": {}, "objectSelector": {}}
WIDGETS = {"group": "example.com", "version": "v2", "resource": "widgets"}
HOOK = {"name": "a.example.com", "objectSelector": {}, "sideEffects": "None", "behavior": {"kind": "allow"}}


@pytest.mark.parametrize(
    "members",
    [
        {"webhook": {"rules": [ALL], **SELECT_ALL}, "attributes": NODE | {"operation": "CREATE"}, "expected": True},
        {"webhook": {"rules": [ALL]}, "attributes": NODE | {"operation": "CREATE"}, "expected": {"call": False}},
        {
            "webhook": {"rules": [ALL], **SELECT_ALL},
            "attributes": {"resource": WIDGETS, "operation": "CREATE", "userInfo": None},
            "env": None,
            "expected": {"call": True, "resource": WIDGETS},
        },
        {
            "webhook": {"rules": [ALL | {"apiVersions": ["v1"]}], "matchPolicy": "Equivalent", **SELECT_ALL},
            "attributes": {"resource": WIDGETS, "operation": "CREATE"},
            "env": {
                "registeredKindsInOrder": [
                    {"resource": WIDGETS | {"version": version}, "kind": {"group": "", "version": "", "kind": ""}}
                    for version in ("v1", "v2")
                ]
            },
            "expected": {"error": {"code": 500}},
        },
        {"hooks": [HOOK], "attributes": NODE | {"operation": "CREATE"}, "expected": {"allowed": True}},
        {
            "hooks": [HOOK | {"rules": [ALL | {"operations": ["DELETE"]}]}],
            "attributes": NODE | {"operation": "CREATE", "object": {}},
            "expected": {"allowed": True, "calls": []},
        },
        {"expr": "object.a == 1", "outcome": True, "error": None, "input": {"object": {"a": 1}, "request": None}},
        {"expr": "has(request.name)", "outcome": "false", "input": {"request": {"kind": None}}},
    ],
    ids=lambda each: json.dumps(each)[:60],
)
def test_what_a_case_may_leave_out(members):
    """What is nil in Go may be absent or null; what ``expected`` does not say is not compared."""
    line = run_case(Case(id=1, members=members, common={}))
    assert line.ok, line.as_json()


def test_a_line_for_each_case(tmp_path, capsys):
    """Each case is one JSON line with its members, and the summary goes to standard error."""
    assert main([written(tmp_path, {"cases": [RIGHT]})]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {
        "id": 7,
        "kind": "patch",
        "expected": {"kubernetes": "ok", "output": {}},
        "got": {"kubernetes": "ok", "output": {}},
        "agrees": True,
    }
    assert err.endswith("cases.json: 1 agree\n")


def test_a_document_and_lines_hold_the_same_cases(tmp_path, capsys):
    """What may stand beside the cases stands in the first line, and each further line is a case."""
    common = {"input": {"object": {"a": 1}}}
    cases = [{"id": 3, "expr": "object.a == 1", "outcome": "true"}, RIGHT]
    assert main([written(tmp_path, common | {"cases": cases})]) == 0
    of_document = capsys.readouterr().out
    assert main([lined(tmp_path, common, *cases)]) == 0
    assert capsys.readouterr().out == of_document


def test_an_unreadable_line_is_reported_with_its_number(tmp_path, capsys):
    """The first line of a file is an object, and each line is JSON: else exit status 2."""
    path = tmp_path / "bad.jsonl"
    for text, reported in (
        ("", f"{path}:1: expected an object"),
        ("[]\n", f"{path}:1: expected an object"),
        ("{}\n{\n", f"{path}:2: not JSON"),
    ):
        path.write_text(text)
        assert main([str(path)]) == 2
        assert capsys.readouterr().err.startswith(reported)


def test_a_case_that_disagrees_is_reported(tmp_path, capsys):
    """One case that disagrees makes the exit status 1, and the others run all the same."""
    assert main([written(tmp_path, {"cases": [RIGHT | {"kubernetes": "error"}, RIGHT]})]) == 1
    agrees = [json.loads(line)["agrees"] for line in capsys.readouterr().out.splitlines()]
    assert agrees == [False, True]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"a": 1}', b'"x"', b'{"cases": {}}', b"[" * 100_000, b"[" * 300 + b"]" * 300],
    ids=lambda each: repr(each[:12]),
)
def test_a_file_that_cannot_be_read(tmp_path, capsys, content):
    """An invalid file of cases is an error of one line, exit status 2, and the next file runs all the same."""
    bad = tmp_path / "bad.json"
    bad.write_bytes(content)
    assert main([str(bad), written(tmp_path, [RIGHT])]) == 2
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert err.splitlines()[0].startswith(f"{bad}: ")


def test_what_is_no_unicode_is_printed_all_the_same(tmp_path, capsys):
    """A case with half a surrogate in it is a line like any other."""
    assert main([written(tmp_path, [RIGHT | {"id": "\ud800", "doc": "[\ud800"}])]) == 1
    assert json.loads(capsys.readouterr().out)["id"] == "\ud800"


def test_without_a_file(tmp_path, capsys):
    """No file, and a file that is not there, are status 2."""
    assert main([]) == 2
    assert main([str(tmp_path / "nope.json")]) == 2
    assert "nope.json: No such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("members", "reported"),
    [
        ({}, "no kind of case has these members"),
        ({"unknown": 1}, "no kind of case has these members"),
        ({"webhook": {}, "attributes": {}}, "expected: missing"),
        ({"webhook": [], "attributes": {}, "expected": {}}, "webhook: found list"),
        ({"webhook": {}, "attributes": {"kind": {}}, "expected": {}}, "resource: missing"),
        ({"hooks": [{"name": "a"}], "attributes": {}, "expected": {}}, "behavior: missing"),
        ({"hooks": 5, "attributes": {}, "expected": {}}, "hooks: found int"),
        ({"expr": "true", "outcome": "true"}, "input: missing"),
        ({"doc": "{", "patch": "[]", "kubernetes": "ok"}, ""),
        ({"doc": {}, "patch": "[]"}, "patch: found str"),
        ({"webhook": {"matchPolicy": "Fuzzy"}, "attributes": {}, "expected": {}}, "Fuzzy"),
    ],
    ids=str,
)
def test_a_case_that_cannot_be_run(members, reported):
    """What is missing or wrong in a case is said in its line: it disagrees, and nothing is raised."""
    line = run_case(Case(id=1, members=members, common={}))
    assert not line.ok
    assert reported in str(line.as_json()["got"])
