"""The work that a configuration causes is bounded, whatever its texts hold: counted in calls of functions."""

import pytest

from gateway.policies import configuration
from gateway.policies.configuration import load
from gateway.policies.decoding import nodes
from gateway.policies.decoding.field import MAX_FINDINGS
from gateway.policies.decoding.texts import SourceText
from tests.patching.test_work import counted

WORKER = """
apiVersion: admission-gateway.dev/v1alpha1
kind: Worker
metadata: {name: %s}
spec: {grpc: {target: "dns:///a.b.svc:50051"}}
---
"""
POLICY = """
apiVersion: admission-gateway.dev/v1alpha1
kind: ValidatingPolicyConfiguration
metadata: {name: c%d}
policies:
- name: p.a.example.com
  worker: %s
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [%s]}]
  sideEffects: None
%s
---
"""


def loaded(*texts):
    """The configuration of these texts, made with little work for each of their bytes."""
    return counted(lambda: load([SourceText(name="x.yaml", content="".join(texts).encode())]), most=4_000_000)


@pytest.mark.parametrize(
    "text",
    [
        "--- {}\n" * 5_000,
        "---\n" * 5_000,
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}' if i else '*a'] * 9)}]\n" for i in range(9)),
        "a0: &a0 {k: 1}\n" + "".join(f"a{i + 1}: &a{i + 1} {{<<: [{', '.join([f'*a{i}'] * 5)}]}}\n" for i in range(20)),
    ],
    ids=["documents", "empty documents", "aliases", "merge keys"],
)
def test_a_text_that_becomes_too_much_is_an_error(text, monkeypatch):
    """Very many documents in a text are not read (half a million took 22 s), nor aliases that double."""
    monkeypatch.setattr(nodes, "MAX_COST", 2_000_000)
    found = loaded(text)
    assert found.fatal
    assert "the text is too large: more than 2000000 bytes" in str(found.errors)


@pytest.mark.parametrize("number", ["9" * 1_000_000, "1.0e+400", "0x" + "f" * 100_000, "1" + ":59" * 99_999])
def test_a_number_that_no_reader_agrees_on_is_an_error_where_it_stands(number):
    """Reading a number of a million digits would take minutes."""
    found = loaded(WORKER % "w", POLICY % (0, "w", "pods", f"  settings: {{a: {number}}}"))
    assert "policies[0].settings.a" in str(found.errors)


def test_of_an_object_with_very_many_errors_some_are_reported():
    """An object with 5,000 unknown fields has a thousand errors, and one that says that there are more."""
    fields = "".join(f"  unknown{index}: 1\n" for index in range(5_000))
    found = loaded(WORKER % "w", POLICY % (0, "w", "pods", fields))
    assert len(found.errors) == MAX_FINDINGS + 1
    assert found.errors[-1].message == "more errors follow; correct these"


def test_what_was_meant_is_looked_for_with_little_work():
    """Neither 5,000 unknown resources nor 310 policies that name an unknown one of 310 workers take long."""
    resources = ", ".join(f"podz{index}" for index in range(5_000))
    workers = [WORKER % f"w{index}" for index in range(310)]
    policies = [POLICY % (index, "other", "pods", "") for index in range(310)]
    found = loaded(*workers, *policies, POLICY % (1_000, "w1", resources, ""))
    assert len(found.errors) == 310


def test_a_configuration_has_so_many_policies_and_workers(monkeypatch):
    """One policy more is an error of the object that has it, and so is one Worker more."""
    monkeypatch.setattr(configuration, "MAX_POLICIES", 3)
    few = [POLICY % (index, "w", "pods", "") for index in range(3)]
    assert not loaded(WORKER % "w", *few).errors
    found = loaded(WORKER % "w", *few, POLICY % (3, "w", "pods", ""))
    assert found.fatal
    assert "the configuration may have at most 3 validating policies" in str(found.errors[0])
    found = loaded(*[WORKER % f"w{index}" for index in range(4)])
    assert "the configuration may have at most 3 Workers" in str(found.errors[0])
