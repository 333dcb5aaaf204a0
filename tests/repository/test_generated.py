"""What is generated or locked is what its source says now."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from admission_worker.samples.sample_worker import VERSION
from deploy.generator import CRDS, stale
from gateway.registration.kubernetes_versions import lacking, read_version

ROOT = Path(__file__).parents[2]
WORKER = "admission/worker/v1/worker.proto"
COPIES = [
    ("gateway/transports/proto", WORKER),
    ("gateway/transports/proto", "admission/queue/v1/queue.proto"),
    ("workers/python/admission_worker/proto", WORKER),
    ("workers/conformance/worker_conformance/proto", WORKER),
]


@pytest.mark.integration
@pytest.mark.parametrize(("copy", "proto"), COPIES)
def test_generated_messages_are_those_of_the_proto(copy, proto, tmp_path):
    """After a change of proto/: `make proto`."""
    command = [sys.executable, "-m", "grpc_tools.protoc", "-Iproto", f"--python_out=pyi_out:{tmp_path}", proto]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    for suffix in ("_pb2.py", "_pb2.pyi"):
        name = proto.replace(".proto", suffix)
        made = re.sub(
            r"(?m)^from admission\.", "from gateway.transports.proto.admission.", (tmp_path / name).read_text()
        )
        assert made == (ROOT / copy / name).read_text()


def test_the_crds_and_dashboards_are_as_their_sources_say():
    """After a change of what a Worker or a policy may hold, of a metric, or of deploy/generator: `make crds`."""
    assert stale() == []


def test_the_crds_use_what_the_oldest_release_has():
    """An API server refuses a definition of which a rule calls what it does not know."""
    oldest = read_version(
        yaml.safe_load((ROOT / "deploy/chart/Chart.yaml").read_text())["kubeVersion"].removeprefix(">=")
    )
    rules = [rule for path in (ROOT / CRDS).glob("*.yaml") for rule in _rules(yaml.safe_load(path.read_text()))]
    assert oldest is not None
    assert len(rules) > 20
    assert [(rule, found) for rule in rules if (found := lacking(rule, oldest))] == []


def _rules(schema):
    """The CEL expressions in a definition."""
    if isinstance(schema, list):
        return [rule for each in schema for rule in _rules(each)]
    if not isinstance(schema, dict):
        return []
    own = [each["rule"] for each in schema.get("x-kubernetes-validations", ()) if isinstance(each, dict)]
    return own + _rules(list(schema.values()))


def test_the_samples_say_the_version_of_their_sdk():
    """The gateway's wheel holds both without the metadata that says so."""
    project = tomllib.loads((ROOT / "workers/python/pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION


def requirements(path):
    return re.findall(r"^([A-Za-z0-9._-]+)", path.read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", ["run", "dev"])
def test_everything_that_is_needed_is_locked_with_hashes(name):
    """After a change of requirements/*.in: `make lock`."""
    wanted = [each.lower() for each in requirements(ROOT / f"requirements/{name}.in") if each != "-r"]
    blocks = re.split(r"\n(?=[A-Za-z0-9])", (ROOT / f"requirements/{name}.txt").read_text())
    locked = {block.partition("==")[0].lower(): block for block in blocks if "==" in block}
    assert set(wanted) <= set(locked)
    assert all("--hash=sha256:" in block for block in locked.values())


def test_the_project_needs_what_is_locked():
    """pyproject.toml names no dependency that requirements/run.in does not lock."""
    declared = re.search(r"^dependencies = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL | re.MULTILINE)
    names = {each.lower() for each in re.findall(r'"([A-Za-z0-9._-]+)', declared.group(1))}
    assert names <= {each.lower() for each in requirements(ROOT / "requirements/run.in")}


def test_no_lock_names_a_registry():
    """Locks hold names, versions and hashes; where packages come from is each machine's own business."""
    for lock in (ROOT / "requirements").glob("*.txt"):
        assert not re.search(r"https?://|--index-url|--find-links", lock.read_text())
