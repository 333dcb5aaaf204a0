"""The kubectl of these tests: a process with the arguments, the words and the exit code of the real one, for the
cluster in ``$CLUSTER``. It knows what the pages use, and ends with 2 where a page uses something else.
"""

import argparse
import json
import sys

import yaml

from tests.migrate.admission import RESOURCES, Refused
from tests.migrate.cluster import here

GROUPS = {
    "MutatingWebhookConfiguration": ".admissionregistration.k8s.io",
    "ValidatingWebhookConfiguration": ".admissionregistration.k8s.io",
    "Deployment": ".apps",
}


def main(argv=None):
    """Run a command; gives the exit code."""
    parser = argparse.ArgumentParser(prog="kubectl", allow_abbrev=False)
    parser.add_argument("-n", "--namespace", default="")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("apply", "create", "replace", "delete"):
        command = _command(commands, name)
        command.add_argument("-f", "--filename", action="append", required=True)
        command.add_argument("--dry-run", choices=["server"])
        command.add_argument("-o", "--output", default="")
        command.add_argument("--ignore-not-found", action="store_true")
    for name in ("get", "patch"):
        command = _command(commands, name)
        command.add_argument("kind", type=_kind)
        command.add_argument("name")
        command.add_argument("-o", "--output", default="")
        command.add_argument("--type", choices=["json", "merge"])
        command.add_argument("-p", "--patch")
    command = _command(commands, "annotate")
    command.add_argument("kind", type=_kind)
    command.add_argument("name")
    command.add_argument("removed")
    chosen = parser.parse_args(argv)
    try:
        {"get": _get, "patch": _patch, "annotate": _annotate}.get(chosen.command, _files)(chosen)
    except Refused as refused:
        return _failed(chosen, refused)
    return 0


def _command(commands, name):
    command = commands.add_parser(name, allow_abbrev=False)
    command.add_argument("-n", "--namespace", default=argparse.SUPPRESS)
    return command


def _kind(word):
    found = [kind for kind, resource in RESOURCES.items() if word in {kind.lower(), resource}]
    if not found:
        raise argparse.ArgumentTypeError(f"{word!r}")
    return found[0]


def _failed(chosen, refused):
    if refused.reason == "Invalid" and refused.details:
        # kubectl prints the causes of these, and not the message.
        about, causes = refused.details, refused.details.get("causes", [])
        wrong = [f"{cause['field']}: {cause['message']}" for cause in causes]
        print(f'The {about["kind"]} "{about["name"]}" is invalid: {" ".join(wrong)}', file=sys.stderr)
        return 1
    reason = f" ({refused.reason})" if refused.reason else ""
    about = ""
    if chosen.command in {"apply", "create", "replace"} and refused.reason != "NotFound":
        verb = "creating" if chosen.command == "create" else "applying" if chosen.command == "apply" else "replacing"
        name = "STDIN" if chosen.filename == ["-"] else chosen.filename[0]
        about = f'error when {verb} "{name}": '
    print(f"Error from server{reason}: {about}{refused}", file=sys.stderr)
    return 1


def _files(chosen):
    for obj in [obj for filename in chosen.filename for obj in _objects(filename)]:
        kind, name = obj["kind"], obj["metadata"]["name"]
        namespace = obj["metadata"].get("namespace", chosen.namespace)
        if chosen.command == "delete":
            _delete(kind, name, namespace, is_lenient=chosen.ignore_not_found)
        elif chosen.dry_run:
            stored, warnings = here().admit(obj)
            for warning in warnings:
                print(f"Warning: {warning}", file=sys.stderr)
            if not _printed(stored, chosen.output):
                print(f"{_said(kind)}/{name} created (server dry run)")
        else:
            done = here().put(obj, must={"apply": "either"}.get(chosen.command, chosen.command))
            print(f"{_said(kind)}/{name} {'replaced' if chosen.command == 'replace' else done}")


def _delete(kind, name, namespace, *, is_lenient):
    try:
        here().delete(kind, name, namespace)
    except Refused as refused:
        if refused.reason != "NotFound" or not is_lenient:
            raise
    else:
        print(f'{_said(kind)} "{name}" deleted')


def _get(chosen):
    assert _printed(here().get(chosen.kind, chosen.name, chosen.namespace), chosen.output), "say -o"


def _patch(chosen):
    obj = here().get(chosen.kind, chosen.name, chosen.namespace)
    patch = json.loads(chosen.patch)
    done = here().put(_patched(obj, patch, chosen.type))
    print(f"{_said(chosen.kind)}/{chosen.name} {'patched' if done == 'configured' else 'patched (no change)'}")


def _annotate(chosen):
    assert chosen.removed.endswith("-"), "annotations are only taken away"
    obj = here().get(chosen.kind, chosen.name, chosen.namespace)
    obj["metadata"].get("annotations", {}).pop(chosen.removed[:-1], None)
    here().put(obj)
    print(f"{_said(chosen.kind)}/{chosen.name} annotated")


def _patched(obj, patch, kind):
    if kind == "json":
        import jsonpatch  # noqa: PLC0415 - kubectl starts often, and patches hardly ever

        return jsonpatch.apply_patch(obj, patch)
    assert kind == "merge", "say --type"
    if not isinstance(patch, dict):
        return patch
    merged = dict(obj) if isinstance(obj, dict) else {}
    for name, value in patch.items():
        merged[name] = _patched(merged.get(name), value, kind)
    return {name: value for name, value in merged.items() if value is not None}


def _objects(filename):
    from pathlib import Path  # noqa: PLC0415

    if filename == "-":
        texts = [sys.stdin.read()]
    else:
        path = Path(filename)
        texts = [each.read_text() for each in (sorted(path.glob("*.yaml")) if path.is_dir() else [path])]
    return [obj for text in texts for obj in yaml.safe_load_all(text) if obj]


def _printed(obj, form):
    """Print it as ``-o`` says; whether that says anything."""
    if form == "yaml":
        print(yaml.safe_dump(obj, sort_keys=True), end="")
    elif form.startswith("jsonpath={."):
        value = obj
        for name in form.removeprefix("jsonpath={.").removesuffix("}").split("."):
            value = value.get(name, "") if isinstance(value, dict) else ""
        print(value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True), end="")
    return bool(form)


def _said(kind):
    return f"{kind.lower()}{GROUPS.get(kind, '')}"


if __name__ == "__main__":
    sys.exit(main())
