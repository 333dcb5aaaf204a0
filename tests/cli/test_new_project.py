"""The projects that ``new-worker`` writes: whole, in each language, and with nothing left to fill in.

That they build, and pass their own tests and the conformance kit, is shown by tests/workers/test_new_projects.py.
"""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from gateway.cli.commands.new_worker import LANGUAGES
from gateway.cli.sdk_sources import SDKS, sdk_files
from tests.cli.projects import NAME, contents, made
from tests.deploy.dockerfile import bases, instructions

ROOT = Path(__file__).parents[2]

COMMON = {
    ".dockerignore",
    ".gitignore",
    "Dockerfile",
    "Makefile",
    "README.md",
    "kit.yaml",
    "manifest.yaml",
    "network-policy.yaml",
    "policies.yaml",
    "review.json",
    "worker-dev.yaml",
    "worker.yaml",
}
OWN = {
    "go": {"go.mod", "go.sum", "main.go", "replica_limit.go", "replica_limit_test.go"},
    "java": {"pom.xml", "worker/pom.xml"}
    | {f"worker/src/main/java/dev/example/policies/{name}.java" for name in ("Main", "ReplicaLimit")}
    | {"worker/src/test/java/dev/example/policies/ReplicaLimitTest.java"},
    "node": {".npmrc", "package.json", "package-lock.json", "tests/replica_limit.test.js"}
    | {f"src/{name}.js" for name in ("main", "replica_limit", "serving")},
    "python": {"pyproject.toml", "requirements.txt", "requirements-dev.txt", "tests/test_replica_limit.py"}
    | {f"policies/{name}.py" for name in ("__init__", "__main__", "replica_limit", "serving")},
    "rust": {"Cargo.toml", "rustfmt.toml", "src/main.rs", "src/replica_limit.rs"},
}

BUILT = {"node_modules", "target", "bin", "__pycache__", ".git", "tests", "test", "samples"}
"""Folders that are no source of an SDK."""


def own(folder):
    """The author's files, without the SDK's."""
    return {path: content.decode() for path, content in contents(folder).items() if not path.startswith("sdk/")}


def documents(path):
    return list(yaml.safe_load_all(path.read_text()))


@pytest.fixture(scope="module", params=LANGUAGES)
def language(request):
    return request.param


@pytest.fixture(scope="module")
def project(language, tmp_path_factory):
    """A project in this language."""
    folder = tmp_path_factory.mktemp("projects") / NAME
    made(language, folder, "--namespace", "admission")
    return folder


def test_every_file_is_there(project, language):
    """A policy, its test, the build, the image, the manifest, the documents, the README; and nothing unexpected."""
    assert own(project).keys() == COMMON | OWN[language]


def test_nothing_is_left_to_fill_in(project):
    """No placeholder of a template, in a file or in its name."""
    for path, text in own(project).items():
        assert not re.search(r"@[A-Z][A-Z0-9_]*@|\.tmpl|TODO|FIXME", path + text), path


def test_no_path_of_this_machine(project):
    """Neither the checkout's nor the home directory's, also not in the SDK."""
    for path, content in contents(project).items():
        assert str(ROOT).encode() not in content, path
        assert not re.search(rb"/home/[a-z]|/root/|/Users/", content), path


def test_no_lock_names_a_registry(project, language):
    """Where packages come from is each machine's own business; a lock that names none pins hashes all the same."""
    locks = {"go": ["go.sum"], "node": ["package-lock.json"], "python": ["requirements.txt", "requirements-dev.txt"]}
    for name in locks.get(language, ()):
        text = (project / name).read_text()
        assert not re.search(r'"resolved": "http|--index-url|--find-links|_authToken', text)
        assert re.search(r"sha512-|sha256:| h1:", text)


def test_the_configuration_is_sound(run, project):
    """``check`` finds no error, with the worker of the cluster and with that of this machine."""
    for worker in ("worker.yaml", "worker-dev.yaml"):
        done = run("check", project / "policies.yaml", project / worker, "-o", "json")
        assert done.code == 0, done.out
        (entry,) = json.loads(done.out)["phases"]["validating"]["entries"]
        assert entry["policies"][0]["policy"] == "replica-limit"
        assert entry["policies"][0]["inputs"] == ["/object/spec/replicas", "/oldObject/spec/replicas"]
    assert documents(project / "worker.yaml")[0]["spec"]["grpc"] == {"target": f"dns:///{NAME}.admission.svc:50051"}


def test_the_command_is_the_same_everywhere(project, language):
    """The gateway starts on this machine what the kit starts."""
    (worker,) = documents(project / "worker-dev.yaml")
    command = " ".join(worker["spec"]["grpc"]["command"])
    assert f" -- {command}\n" in (project / "Makefile").read_text()
    assert command == (ROOT / f"gateway/cli/projects/{language}/fragments/command.txt").read_text().strip()


def test_the_manifest_belongs_together(project):
    """What selects Pods selects those of the Deployment; all is in the namespace; the probe calls the right port."""
    found = {each["kind"]: each for each in documents(project / "manifest.yaml")}
    found |= {each["kind"]: each for each in documents(project / "network-policy.yaml")}
    assert found.keys() == {"Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"}
    assert {(each["metadata"]["name"], each["metadata"]["namespace"]) for each in found.values()} == {
        (NAME, "admission")
    }
    deployment, service = found["Deployment"]["spec"], found["Service"]["spec"]
    labels = deployment["template"]["metadata"]["labels"].items()
    for selected in (
        deployment["selector"]["matchLabels"],
        service["selector"],
        found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        found["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ):
        assert selected.items() <= labels
    (container,) = deployment["template"]["spec"]["containers"]
    assert deployment["replicas"] == 2
    assert service["clusterIP"] == "None"
    assert container["readinessProbe"]["grpc"]["port"] == service["ports"][0]["port"] == 50051
    assert "0.0.0.0:50051" in container["args"]


def test_the_pods_are_restricted(project):
    """As the Pod Security Standard "restricted" wants it, with a read-only root file system."""
    pod = documents(project / "manifest.yaml")[0]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}


def test_the_image(project):
    """Two stages on bases with tags; the last one runs as an unprivileged user, on the port of the manifest."""
    build, final = instructions((project / "Dockerfile").read_text())
    named = bases((project / "Dockerfile").read_text())
    assert named
    assert all(":" in base and not base.endswith(":latest") for base in named)
    assert build[0][1].endswith(" AS build")
    assert any(word == "COPY" and rest.startswith("--from=build ") for word, rest in final)
    last = dict(final)
    assert last["USER"] == "65532:65532"
    assert last["EXPOSE"] == "50051"
    assert json.loads(last["ENTRYPOINT"])
    assert json.loads(last["CMD"]) == ["--listen", "0.0.0.0:50051"]


def test_what_the_image_copies_is_there(project):
    """Each source is in the project, or may be away (the `*` of Cargo.lock), so that a new project is an image at once;
    and .dockerignore lets it through, and little else.
    """
    let_through = set(re.findall(r"^!(.+)$", (project / ".dockerignore").read_text(), re.MULTILINE))
    assert (project / ".dockerignore").read_text().startswith("*\n")
    for stage in instructions((project / "Dockerfile").read_text()):
        for source in [
            source
            for word, rest in stage
            if word == "COPY" and not rest.startswith("--from")
            for source in rest.split()[:-1]
        ]:
            assert source.removesuffix("*") in let_through
            assert list(project.glob(source)) or source == "Cargo.lock*"


@pytest.mark.integration
def test_the_makefile(project):
    """``make`` lists its targets, each with what it does."""
    done = subprocess.run(["make", "-C", project], capture_output=True, text=True, check=True, timeout=60)
    for target in ("build", "test", "run", "kit", "image", "clean"):
        assert re.search(rf"^{target} +\w", done.stdout, re.MULTILINE)


def test_the_copy_of_the_sdk(project, language):
    """It is what builds a worker: no tests, no samples, nothing that was built."""
    copied = contents(project / "sdk")
    assert copied.keys() == sdk_files(language).keys()
    assert {"LICENSE", "README.md"} <= copied.keys()
    for path in copied:
        assert BUILT.isdisjoint(Path(path).parts[:-1]), path
        assert not path.endswith(("_test.go", ".test.js", ".pyc", ".class", ".so")), path


def test_the_readme_names_what_is_there(project):
    """Each file that its table names exists, or is made by the first build."""
    table = [line for line in (project / "README.md").read_text().splitlines() if line.startswith("| `")]
    named = [path for line in table for path in re.findall(r"`([a-zA-Z./_-]+\.[a-z]+|Dockerfile|[a-z/]+/)`", line)]
    assert len(named) > 8
    for path in named:
        assert (project / path).exists() or path == "Cargo.lock"


def test_python_requirements_are_what_we_test_with():
    """The pinned versions are those of requirements/dev.txt, so the SDK's tests ran with them."""
    ours = dict(re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;]+)", (ROOT / "requirements/dev.txt").read_text(), re.MULTILINE))
    ours |= dict(
        re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;]+)", (ROOT / "requirements/run.txt").read_text(), re.MULTILINE)
    )
    folder = ROOT / "gateway/cli/projects/python"
    run, dev = ((folder / f"requirements{name}.txt.tmpl").read_text() for name in ("", "-dev"))
    pins = {
        name: dict(re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;]+)", text, re.MULTILINE))
        for name, text in {"run": run, "dev": dev}.items()
    }
    assert pins["run"].items() <= pins["dev"].items() <= ours.items()
    declared = re.search(
        r"^dependencies = \[(.*?)^\]", (ROOT / "workers/python/pyproject.toml").read_text(), re.DOTALL | re.MULTILINE
    )
    assert set(re.findall(r'"([a-z-]+)', declared.group(1))) <= pins["run"].keys()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """What is installed: an unpacked wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_a_wheel_holds_of_the_sdks_what_is_copied(wheel, language):
    """And only that, but for the lock that the project's is made from, and the samples that `demo` shows. After a new
    file in an SDK: pyproject.toml.
    """
    held = {path for path in contents(wheel / "gateway/cli/sdks" / language) if "admission_worker/samples/" not in path}
    assert held - {SDKS[language].pins} == sdk_files(language).keys()


@pytest.mark.integration
def test_an_installed_gateway_writes_the_same(wheel, project, language, tmp_path):
    """Byte for byte what one in a checkout writes."""
    code = "import sys; from gateway.cli.main import main; main()"
    command = [sys.executable, "-c", code, "new-worker", "--lang", language, NAME, "--namespace", "admission"]
    env = os.environ | {"PYTHONPATH": str(wheel)}
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120, env=env)
    assert contents(tmp_path / NAME) == contents(project)
