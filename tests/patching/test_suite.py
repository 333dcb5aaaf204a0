"""The public JSON Patch test suite (json-patch/json-patch-tests), where it is at hand."""

import json
from pathlib import Path

import pytest

from gateway.patching.application import apply_json_patch
from gateway.patching.errors import PatchError
from tests.patching.values import strictly_equal

SUITES = Path(__file__).parents[2].parent / "shared" / "suites"


def cases():
    """Every enabled case of both files."""
    for name in ("json_patch_tests", "json_patch_spec_tests"):
        path = SUITES / f"{name}.json"
        if not path.exists():
            yield pytest.param(None, id=name, marks=pytest.mark.skip("the public suite is not here"))
            continue
        for index, case in enumerate(json.loads(path.read_text())):
            if not case.get("disabled"):
                yield pytest.param(case, id=f"{name}-{index}")


@pytest.mark.parametrize("case", list(cases()))
def test_the_public_suite(case):
    """Each case gives the document that the suite expects, or a PatchError where it expects an error."""
    patch = json.dumps(case["patch"]).encode()
    if "error" in case:
        with pytest.raises(PatchError):
            apply_json_patch(case["doc"], patch)
        return
    result = apply_json_patch(case["doc"], patch)
    if "expected" in case:
        assert strictly_equal(result, case["expected"])
