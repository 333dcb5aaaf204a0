"""The images of docker-compose.yml's workers, without a container engine: the steps that build them run here."""

import pytest

from tests.deploy.dockerfile import ROOT, Context, build, exec_form, instructions

PROGRAMS = {
    "go": "build/worker",
    "java": "build/bin/samples.jar",
    "node": "app/samples/main.js",
    "rust": "build/target/release/samples",
}
"""What the build stage leaves for the final one, below `/`."""

INSTEAD = {"cargo build --release --package samples": "cargo metadata --quiet --format-version 1 > /dev/null"}
"""What is too much here. `make workers` builds the same package; this finds all that its workspace names."""


@pytest.mark.parametrize("language", PROGRAMS)
def test_the_steps_make_the_worker(language, tmp_path):
    """From the files that a builder is sent."""
    stage, final = instructions((ROOT / f"deploy/demo/workers/{language}.Dockerfile").read_text())
    build(stage, Context(ROOT), tmp_path, lambda words: INSTEAD.get(words, words))
    assert (tmp_path / PROGRAMS[language]).exists() is (language != "rust")
    copied = dict(final)["COPY"].split()[1].lstrip("/")
    assert PROGRAMS[language].startswith(copied)
    assert exec_form(final, "CMD") == ["--listen", "0.0.0.0:50051"]
