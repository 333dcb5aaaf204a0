"""Whatever a policy file holds: it is a configuration, with errors that name their place, and never an exception.

* What is not fatal has entries, and those can be registered; what has an error says where, in one line.
* The same file loads alike twice: nothing depends on what was read before.
* Loading costs no more than the file's size explains (the time limit of an input).

The first byte of an input says whether the file is YAML or JSON, and the second how many files it is cut into at "%%%".
"""

from collections.abc import Iterator
from pathlib import Path

from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.policies.model import Phase
from gateway.registration.entries import make_entries
from tests.virtual.gateway import policies_yaml, worker_yaml

EXAMPLES = Path(__file__).parents[2] / "examples"
WORDS = (
    b"apiVersion:  | admission-gateway.dev/v1alpha1 | kind: Worker | kind: ValidatingPolicyConfiguration | "
    b"metadata: | ValidatingWebhookConfiguration | admissionregistration.k8s.io/v1 | webhooks: | policies: | "
    b"\n---\n | - name:  | matchConditions: | expression:  | namespaceSelector: | matchExpressions: | "
    b"rules:  | resources:  | clientConfig: | &a  | *a | <<:  | !!binary  | !!python/object:os.system  | ?  | "
    b": |\n | { | [ | %YAML 1.2\n | \xef\xbb\xbf | timeoutSeconds:  | 1e999 | .nan | 0x | 2026-01-01 | grpc: | "
    b"webhook: | hook: | queue: | settings:"
).split(b" | ")


def seeds() -> Iterator[bytes]:
    """The examples of the documentation, and the forms that they lack."""
    for path in sorted((*EXAMPLES.rglob("*.yaml"), *EXAMPLES.rglob("*.yml"), *EXAMPLES.rglob("*.json"))):
        yield (b"j" if path.suffix == ".json" else b"y") + path.read_bytes()
    rule = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
    policy = {
        "name": "a.w.example.com",
        "worker": "w",
        "rules": [rule],
        "sideEffects": "None",
        "matchConditions": [{"name": "c", "expression": "object.metadata.name != 'x'"}],
        "namespaceSelector": {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]},
        "settings": {"a": [1, 2.5, None]},
        "inputs": ["/object/metadata"],
        "cache": {"ttl": "5m", "staleIfError": "1h"},
        "mode": "warn",
        "timeoutSeconds": 0.5,
    }
    yield b"y" + (worker_yaml("w") + policies_yaml("Validating", [policy])).encode()
    yield b"y" + (worker_yaml("w") + policies_yaml("Mutating", [policy | {"writes": ["/metadata"]}])).encode()


def run(data: bytes) -> None:
    """See the invariant above."""
    suffix = "json" if data[:1] == b"j" else "yaml"
    parts = data[1:].split(b"%%%")
    texts = [SourceText(name=f"p{number}.{suffix}", content=part) for number, part in enumerate(parts)]
    made = load(texts)
    assert load(texts) == made
    for error in made.errors:
        assert str(error.place)
        assert error.message
        assert "\n" not in error.message or "compilation failed" in error.message, error.message
    if made.fatal:
        assert made.errors
        return
    entries = make_entries(made)
    for phase in Phase:
        covered = {policy.qualified_name for entry in entries.of(phase) for policy in entry.policies}
        assert covered <= {policy.qualified_name for policy in made.policies(phase)}
