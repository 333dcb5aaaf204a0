"""docs/observe.md lists the spans' attributes: each that the code sets, and no other."""

import re

from tests.docs.pages import ROOT
from tests.docs.spans import PREFIX, documented

TRACES = ROOT / "gateway/telemetry/traces"
SDK = ROOT / "workers/python/admission_worker/tracing.py"


def test_the_attributes_are_those_of_the_code():
    """tests/integration/test_traces.py compares them span by span, for those that its reviews have."""
    names = set().union(*(attributes for _, attributes in documented()))
    source = "".join(path.read_text() for path in (*TRACES.glob("*.py"), SDK))
    # Names of spans have no value.
    assert names == set(re.findall(rf'"({PREFIX}[a-z_.]+)"(?:: |\] =)', source))
