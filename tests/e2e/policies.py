"""Policies of the two workers, as a configuration has them. Those of ``configured`` do what their settings say."""

from tests.integration.running import policy

ENTRY = "group.judge.test.example.com"
"""The entry of validating policies of which the first is called "judge"."""


def rules(*resources, group="", version="v1", operations=("*",)):
    """Rules for these resources."""
    lists = {"operations": operations, "apiGroups": [group], "apiVersions": [version], "resources": resources}
    return [{name: list(values) for name, values in lists.items()}]


CONFIG_MAPS = rules("configmaps")
THINGS = rules("things", group="e2e.example.com")


def judge(name="judge", *, annotate=(), warnings=(), deny=None, **fields):
    """A validating policy, on pods unless ``fields`` have rules; ``annotate``: what becomes an audit annotation."""
    settings = {"annotate": list(annotate), "warnings": list(warnings), "deny": deny or {}}
    return policy(name, worker="configured", policy="judge", settings=settings, **fields)


def denies(message, *, name="judge", code=403, reason="Forbidden", causes=(), **fields):
    """One that denies."""
    status = {"message": message, "code": code, "reason": reason, "causes": list(causes)}
    return judge(name, deny=status, **fields)


def echo(*members, name="echo", **fields):
    """A validating policy: it denies with these members of the request as its message."""
    return policy(name, worker="configured", policy="echo", settings={"members": list(members)}, **fields)


def required_labels(*labels, name="required-labels", **fields):
    """A validating policy: the object must have these labels."""
    settings = {"labels": dict.fromkeys(labels, "")}
    return policy(name, worker="samples", policy="required-labels", settings=settings, **fields)


def note(key, *, pointer="", text="", warnings=(), **fields):
    """A mutating policy: it writes an annotation, a text or what is at a place of the object."""
    settings = {"key": key, "pointer": pointer, "text": text, "warnings": list(warnings)}
    return policy("note", worker="configured", policy="note", settings=settings, **fields)


def patch(key, **fields):
    """A mutating policy: it applies the JSON Patch in this annotation of the object."""
    return policy(key, worker="configured", policy="patch", settings={"key": key}, **fields)


def hang(**fields):
    """A validating policy that never answers."""
    return policy("hang", worker="configured", policy="hang", **fields)


def default_labels(labels, **fields):
    """A mutating policy: it adds the labels that are missing."""
    return policy("default-labels", worker="samples", settings={"labels": labels}, **fields)
