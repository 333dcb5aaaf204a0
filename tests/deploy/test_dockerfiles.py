"""What holds for every Dockerfile: the gateway's, the demo's, and those of the projects that ``new-worker`` writes."""

import re
from importlib.metadata import version

import pytest

from gateway.cli.commands.new_worker import LANGUAGES
from gateway.cli.main import main
from tests.deploy.dockerfile import ROOT, bases, exec_form, instructions

FILES = {
    "gateway": ROOT / "deploy/Dockerfile",
    **{f"demo's {path.stem}": path for path in sorted((ROOT / "deploy/demo/workers").glob("*.Dockerfile"))},
    **{language: ROOT / f"gateway/cli/projects/{language}/Dockerfile.tmpl" for language in LANGUAGES},
}

FOR_BOTH = {
    "golang",
    "maven",
    "node",
    "python",
    "rust",
    *(f"gcr.io/distroless/{name}-debian12" for name in ("cc", "java17", "nodejs22", "static")),
}
"""Images that are published for linux/amd64 and linux/arm64: of the Docker Official Images, and in distroless' README.
Look there before you add one."""

BUILT_ELSEWHERE = {"go": "GOARCH=$TARGETARCH", "java": "mvn"}
"""Build stages that run on the builder's own architecture, and the word for why the result is right all the same: the
compiler is given the image's architecture; a jar has none."""


@pytest.fixture(params=FILES)
def name(request):
    return request.param


@pytest.fixture
def text(name):
    return FILES[name].read_text()


@pytest.fixture
def stages(text):
    return instructions(text)


def test_the_final_image_has_only_what_runs(text, stages):
    """It begins from a slim or distroless image, and gets what was built from another stage."""
    assert len(stages) == 2
    assert re.search("distroless|slim", bases(text)[-1])
    assert any(word == "COPY" and rest.startswith("--from=build ") for word, rest in stages[-1])


def test_it_runs_as_an_unprivileged_user(stages):
    """65532, as the pods say; nothing is written afterwards, and no shell is between SIGTERM and the program."""
    words = [word for word, _ in stages[-1]]
    assert dict(stages[-1])["USER"] == "65532:65532"
    assert not {"COPY", "RUN"} & set(words[words.index("USER") :])
    assert exec_form(stages[-1], "ENTRYPOINT")[0].startswith("/")


def test_every_base_is_published_for_both_architectures(text):
    """And has a tag, which is not the newest."""
    found = [base.partition(":") for base in bases(text)]
    assert found
    assert [image for image, _, _ in found if image not in FOR_BOTH] == []
    assert all(tag not in {"", "latest"} for _, _, tag in found)


def test_it_is_built_for_the_architecture_that_is_wanted(name, stages):
    """A stage runs on the image's own architecture, or is one that builds for others; no step names one."""
    build, final = stages
    language = name.rpartition(" ")[2]
    assert "--platform" not in final[0][1]
    assert build[0][1].startswith("--platform=$BUILDPLATFORM ") is (language in BUILT_ELSEWHERE)
    assert any(BUILT_ELSEWHERE.get(language, "") in rest for word, rest in build if word == "RUN")
    steps = " ".join(rest for stage in stages for _, rest in stage)
    assert re.findall(r"amd64|arm64|x86_64|aarch64", steps) == []


def test_hooks_are_added_to_the_gateways_image():
    """Its user is the gateway's again, and its command are flags of `hook-worker`."""
    text = (ROOT / "deploy/hooks.Dockerfile").read_text()
    (stage,) = instructions(text)
    assert bases(text) == [f"admission-gateway:{version('admission-gateway')}"]
    assert stage[-2] == ("USER", "65532:65532")
    command, *flags = exec_form(stage, "CMD")
    known = {name for option in main.commands[command].params for name in option.opts}
    assert {each for each in flags if each.startswith("--")} <= known
