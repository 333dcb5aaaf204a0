"""What the pages show can be used as it stands: configurations load, objects are Kubernetes', programs run."""

import base64
import json
import os
import re
import ssl
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest
import yaml
from click.testing import CliRunner

from gateway.cli.main import main
from gateway.documents.documents import DocumentBuilder
from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.policies.model import Configuration
from gateway.policies.workers.targets import ServiceReference
from gateway.registration.entries import make_entries
from gateway.registration.webhook_configurations import Registrar, register
from gateway.review.request import decode
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer import parse_pointer
from gateway.scopes.pointer_set import PointerSet
from gateway.serving.app import Gateway
from gateway.serving.settings import Settings
from gateway.sources.loading import load_configuration
from tests.docs.pages import BUNDLE, ROOT, blocks, named, pages
from tests.examples import patient_examples

OURS = "admission-gateway.dev/v1alpha1"
REVIEWS = ROOT / "examples" / "reviews"
KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
WORDS = ("no", "one", "two", "three", "four", "five", "six")

YAML = blocks("yaml")
FAULTY = [block for block in YAML if block.before.endswith(": errors -->")]
CONFIGURATIONS = [block for block in YAML if OURS in block.text and block not in FAULTY]
WEBHOOKS = [block for block in YAML if any(kind in block.text for kind in KINDS)]
CHECKED = [block for block in blocks("text") if block.before.startswith("<!-- check: ")]
DOCUMENTED = [block for block in YAML if block.before == "<!-- document -->"]


def documents(text):
    """The documents of a YAML text."""
    return [each for each in yaml.safe_load_all(text) if each]


def loaded(objects) -> Configuration:
    """The objects, loaded as the gateway loads them; a Worker of any name that is not among them is added."""
    workers = {each["metadata"]["name"] for each in objects if each.get("kind") == "Worker"}
    used = {policy["worker"] for each in objects for policy in each.get("policies", [])} - workers
    added = [
        {
            "apiVersion": OURS,
            "kind": "Worker",
            "metadata": {"name": name},
            "spec": {"grpc": {"target": "localhost:50051"}},
        }
        for name in used
    ]
    text = "\n".join(json.dumps(each) for each in [*objects, *added])
    return load([SourceText(name="block.json", content=text.encode())])


@pytest.mark.parametrize("block", CONFIGURATIONS, ids=str)
def test_every_configuration_loads(block):
    """A configuration that a page shows has no errors."""
    configuration = loaded(documents(block.text))
    assert (configuration.errors, configuration.fatal) == ((), False)


@pytest.mark.parametrize("block", FAULTY, ids=str)
def test_errors_are_reported_as_shown(block):
    """A faulty configuration has exactly the errors that stand below it."""
    later = [each for each in pages()[block.page].blocks() if each.line > block.line]
    expected = next(each.text for each in later if each.language == "text")
    configuration = load([SourceText(name=block.name, content=block.text.encode())])
    assert "".join(f"{error}\n" for error in configuration.errors) == expected


def test_there_are_such_blocks():
    """The tests here are about something."""
    assert CONFIGURATIONS
    assert FAULTY
    assert WEBHOOKS
    assert CHECKED
    assert DOCUMENTED


@pytest.mark.parametrize("block", DOCUMENTED, ids=str)
def test_a_document_is_what_the_inputs_show(block):
    """The document that stands below some inputs is what they show of the first example, in a namespace of team a."""
    later = [each for each in pages()[block.page].blocks() if each.line > block.line]
    expected = next(each.text for each in later if each.language == "json")
    (said,) = documents(block.text)
    inputs = Inputs(places=PointerSet(parse_pointer(pointer) for pointer in said["inputs"]))
    request = decode((REVIEWS / "1-pod-create.json").read_bytes())
    document = DocumentBuilder(request).of(inputs, None, changed=False, namespace={"team": "a"})
    # To the order of members: it is the request's own.
    assert list(_flat(json.loads(document.content))) == list(_flat(json.loads(expected)))


def _flat(value, path=()):
    """Each place of a JSON value with its value, in its order."""
    yield path, value
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in children:
        yield from _flat(child, (*path, name))


@pytest.mark.parametrize("block", [*blocks("yaml"), *blocks("json")], ids=str)
def test_every_block_is_what_it_says(block):
    """YAML is YAML with unique keys as far as we load it, JSON is JSON."""
    if block.language == "json":
        json.loads(block.text)
    else:
        assert documents(block.text)


@pytest.mark.parametrize("block", blocks("sh"), ids=str)
def test_every_shell_takes_what_is_shown(block):
    """A URL with a question mark is quoted: zsh takes one that is not for a pattern, and runs nothing."""
    commands = re.sub(r"'[^']*'|\"[^\"]*\"|#.*", "", block.text)
    assert [word for word in commands.split() if "?" in word and not word.startswith("$")] == []


@pytest.mark.parametrize("block", WEBHOOKS, ids=str)
def test_webhook_configurations_are_kubernetes(block):
    """A webhook configuration that a page shows passes Kubernetes' validation."""
    configuration = load([SourceText(name="block.yaml", content=block.text.encode())])
    assert (configuration.errors, configuration.fatal) == ((), False)
    # A reader who copies it does not see what the page left out.
    assert not [warning for warning in configuration.warnings if "caBundle" in warning.place.path]


def test_what_is_registered_is_what_render_prints():
    """A webhook that docs/operate-reference.md shows is one that `render` makes of the examples."""
    entries = make_entries(load_configuration([ROOT / "examples" / "policies"]))
    registrar = Registrar(
        service=ServiceReference(namespace="admission-gateway", name="gateway", port=8443),
        ca_bundle=base64.b64decode(BUNDLE),
        excluded_namespaces=("kube-system", "kube-node-lease"),
    )
    registration = register(entries, registrar)
    assert not registration.warnings
    made = [webhook for each in registration.objects for webhook in each["webhooks"]]
    shown = [each for block in WEBHOOKS if block.page == "docs/operate-reference.md" for each in documents(block.text)]
    webhooks = [webhook for each in shown for webhook in each["webhooks"]]
    assert webhooks
    assert all(webhook in made for webhook in webhooks)
    assert f"One of the {WORDS[len(made)]} webhooks" in pages()["docs/operate-reference.md"].text


def test_the_timeouts_are_those_of_the_examples():
    """The sums that docs/operate-reference.md works out for the examples are the registered timeouts."""
    entries = make_entries(load_configuration([ROOT / "examples" / "policies"]))
    text = pages()["docs/operate-reference.md"].text
    assert [entry.timeout_seconds for entry in entries.mutating] == [2, 5, 2]
    assert "1 + 1 = 2, 1 + 2 × (1 + 1) = 5, and 1 + 1 = 2" in text
    assert {entry.timeout_seconds for entry in entries.validating} == {3}
    assert "1 + 2 = 3" in text
    longest = max(entry.timeout_seconds for entry in (*entries.mutating, *entries.validating))
    # "Above": the next multiple of 5.
    assert f"25 + {longest} + 10, so {(25 + longest + 10) // 5 * 5 + 5}" in pages()["docs/operate.md"].text


@pytest.mark.parametrize("block", CHECKED, ids=str)
def test_a_report_of_check_is_what_check_says(block, monkeypatch):
    """A report that stands behind a path is the one that `check` prints for it."""
    monkeypatch.chdir(ROOT)
    path = block.before.removeprefix("<!-- check: ").removesuffix(" -->")
    assert CliRunner().invoke(main, ["check", path]).output == block.text


async def served(folder, path, review="1-pod-create.json", paths=("mutate", "validate")):
    """What a gateway that serves a configuration answers, by path, to one of the example reviews."""
    settings = Settings(
        listen=("127.0.0.1", 0), admin_listen=("127.0.0.1", 0), tls_dev_dir=folder / "tls", worker_startup_timeout=20
    )
    gateway = Gateway(load_configuration([path]), settings)
    (host, port), _ = await gateway.start()
    try:
        context = ssl.create_default_context(cafile=gateway.certificates.ca_file)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
            answers = {}
            for each in paths:
                headers = {"Content-Type": "application/json"}
                url = f"https://{host}:{port}/{each}?timeout=10s"
                async with session.post(url, data=(REVIEWS / review).read_bytes(), headers=headers) as response:
                    answers[each] = await response.json()
            return answers
    finally:
        await gateway.stop(drain=False)


@pytest.mark.integration
async def test_the_policy_of_the_readme_works(tmp_path):
    """Its two files, put beside each other and served, give the answer that stands below them."""
    for name in ("labels.py", "policies.yaml"):
        (tmp_path / name).write_text(named("README.md", name))
    answers = await served(tmp_path, tmp_path / "policies.yaml")
    (shown,) = [json.loads(block.text) for block in pages()["README.md"].blocks() if block.language == "json"]
    assert answers["validate"] == shown


@pytest.mark.integration
async def test_the_policies_of_the_guide_work(tmp_path):
    """The files of docs/write-a-policy.md, served, deny and change as they say."""
    for name in ("tiers.py", "tiers.yaml"):
        (tmp_path / name).write_text(named("docs/write-a-policy.md", name))
    answers = await served(tmp_path, tmp_path / "tiers.yaml")
    status = answers["validate"]["response"]["status"]
    assert (status["code"], status["message"]) == (403, "label 'tier' must be one of frontend, backend")
    patch = json.loads(base64.b64decode(answers["mutate"]["response"]["patch"]))
    assert patch == [{"op": "add", "path": "/metadata/labels/tier", "value": "frontend"}]


@pytest.mark.integration
def test_the_tests_of_the_guide_pass(tmp_path):
    """The command that docs/write-a-policy.md shows runs the tests that it shows, and they pass."""
    for name in ("tiers.py", "test_tiers.py"):
        (tmp_path / name).write_text(named("docs/write-a-policy.md", name))
    for name in ("Makefile", "pyproject.toml", ".venv"):
        (tmp_path / name).symlink_to(ROOT / name)
    (shown,) = [
        block.text for block in blocks("sh", pages_of="docs/write-a-policy.md") if "test_tiers.py" in block.text
    ]
    program, *arguments = shown.split()
    # What is installed is installed: the targets that would see to it are taken as done. And this make and this pytest
    # know nothing of those that run this test.
    assert program == "make"
    done = [f"--old-file={target}" for target in (".venv/.dev", ".venv/.run", "jq")]
    outer = ("MAKE", "MFLAGS", "PYTEST_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(outer)}
    reported = subprocess.run(
        [program, *done, *arguments], cwd=tmp_path, env=environment, check=False, capture_output=True, text=True
    )
    assert (reported.returncode, "2 passed" in reported.stdout) == (0, True), reported


@pytest.mark.integration
async def test_the_message_of_denied_is_that_of_the_examples(tmp_path):
    """What docs/denied.md shows is what the examples, sharing an entry, say to a privileged pod without labels."""
    policies = patient_examples(tmp_path) / "policies"
    file = policies / "validating.yaml"
    file.write_text(file.read_text().replace("failurePolicy: Ignore", "failurePolicy: Fail"))
    path = "validate/group.required-labels.samples.example.com"
    answers = await served(tmp_path, policies, "7-pod-privileged.json", [path])
    lines = answers[path]["response"]["status"]["message"].splitlines()
    text = pages()["docs/denied.md"].text
    assert len(lines) == 2
    assert all(line in text for line in [*lines, '"group.required-labels.samples.example.com" denied the request'])


@pytest.mark.integration
async def test_the_warning_of_denied_is_that_of_a_mode(tmp_path):
    """The warning that docs/denied.md shows is what a policy says under mode warn."""
    worker = named("README.md", "labels.py")
    (tmp_path / "labels.py").write_text(worker)
    policies = named("README.md", "policies.yaml").replace("  sideEffects", "  mode: warn\n  sideEffects")
    (tmp_path / "policies.yaml").write_text(policies)
    response = (await served(tmp_path, tmp_path / "policies.yaml"))["validate"]["response"]
    assert response["allowed"]
    assert all(f"Warning: {text}\n" in pages()["docs/denied.md"].text for text in response["warnings"])


async def test_the_note_about_redis_is_that_of_readyz(tmp_path):
    """What docs/operate.md shows of `/readyz?verbose` is what it prints if Redis does not answer."""
    settings = Settings(
        listen=("127.0.0.1", 0), admin_listen=("127.0.0.1", 0), tls_dev_dir=tmp_path, redis=f"unix://{tmp_path}/redis"
    )
    gateway = Gateway(load_configuration([ROOT / "examples" / "policies" / "namespaces.yaml"]), settings)
    _, (host, port) = await gateway.start()
    try:
        async with aiohttp.ClientSession() as session, session.get(f"http://{host}:{port}/readyz?verbose") as response:
            assert response.status == 200
            assert await response.text() in [block.text for block in blocks("text", pages_of="docs/operate.md")]
    finally:
        await gateway.stop(drain=False)


@pytest.mark.integration
def test_the_review_of_the_guide_is_what_review_says(tmp_path):
    """What docs/write-a-policy.md shows of `review` is what it prints for the policies that it shows."""
    for name in ("tiers.py", "tiers.yaml"):
        (tmp_path / name).write_text(named("docs/write-a-policy.md", name))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    command = [Path(sys.executable).parent / "admission-gateway", "review", "--policies", "tiers.yaml"]
    done = subprocess.run(
        [*command, "examples/reviews/1-pod-create.json"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert done.stdout in [block.text for block in blocks("text", pages_of="docs/write-a-policy.md")]


@pytest.mark.integration
def test_the_demonstration_says_what_the_readme_shows(tmp_path):
    """Each line of the excerpt of `make run` is one that it prints."""
    patient_examples(tmp_path)
    command = [Path(sys.executable).parent / "admission-gateway", "demo", "--once"]
    addresses = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]
    printed = subprocess.run([*command, *addresses], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    excerpt = next(block.text for block in pages()["README.md"].blocks() if block.text.startswith(" 1  "))
    # The gateway gets a new uid with each call.
    of_excerpt, of_demo = (
        set(re.sub(r"uid: [0-9a-f-]{36}", "uid: ...", text).splitlines()) for text in (excerpt, printed)
    )
    assert not of_excerpt - of_demo
