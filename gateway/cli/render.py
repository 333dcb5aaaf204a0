"""``admission-gateway render``: the objects that register the gateway with kube-apiserver, to be applied by kubectl.

The objects go to the standard output, errors and warnings to the standard error. A configuration with errors is not
rendered: it would register entries that the corrected one renames.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import click
import yaml

from gateway.cli.configuration import counted, report_errors
from gateway.cli.doctor import finding_lines
from gateway.cli.registrar import loaded_registration
from gateway.cli.standard_streams import COULD_NOT, WRONG_CONFIGURATION, fail, note
from gateway.lockout.findings import Severity
from gateway.lockout.registration import examine_registration
from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.policies.model import Configuration

_PLAIN: Final = re.compile(r"[A-Za-z/][-A-Za-z0-9./_]*")
_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def run(paths: tuple[Path, ...], output: str, **values: Any) -> None:
    """See the command."""
    chosen = loaded_registration(paths, values, flag="PATH", require_sound=_refuse_errors)
    registrar, registration = chosen.registrar, chosen.registration
    for warning in registration.warnings:
        _warn(warning)
    for finding in examine_registration(chosen.configuration, chosen.entries, registration, registrar).findings:
        if finding.severity is Severity.REFUSE:
            _warn("\n".join(finding_lines(finding)))
    if not registrar.ca_bundle:
        _warn(
            "--ca-bundle is not set: kube-apiserver verifies the gateway's certificate with its system's roots, unless "
            "a controller adds a caBundle to the objects"
        )
    if values["manifest"] is None:
        click.echo(_FORMATS[output](list(registration.objects)), nl=False)
    else:
        _write_manifests(values["manifest"], output, registration.objects)


def _write_manifests(directory: Path, output: str, objects: Iterable[dict[str, Any]]) -> None:
    """Write each object to the directory of its plugin, and name the file on the output.

    An API server does not start with a file that has an error, or is of another plugin's kind; so nothing that does not
    load here is written.
    """
    if output != "yaml":
        raise click.UsageError("--manifest writes YAML; leave out --output")
    texts = {_plugin(each) / f"{each['metadata']['name']}.yaml": _as_yaml([each]) for each in objects}
    loaded = load([SourceText(name=str(file), content=text.encode()) for file, text in texts.items()])
    report_errors(loaded.errors)
    if loaded.errors:
        fail("kube-apiserver would not start with these manifests: nothing is written", WRONG_CONFIGURATION)
    for name, text in texts.items():
        file = directory / name
        # The API server reads files of some extensions only, so it never reads half of one.
        unfinished = file.with_suffix(".new")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            unfinished.write_text(text)
            unfinished.replace(file)
        except OSError as error:
            fail(
                f"--manifest: {file}: cannot be written: {error.strerror}; check the path and its permissions",
                COULD_NOT,
            )
        click.echo(file)


def _plugin(manifest: dict[str, Any]) -> Path:
    return Path("mutating" if manifest["kind"].startswith("Mutating") else "validating")


def _refuse_errors(configuration: Configuration) -> None:
    for warning in configuration.warnings:
        _warn(str(warning))
    report_errors(configuration.errors)
    if configuration.errors:
        fail(f"the configuration has {counted(len(configuration.errors))}: nothing is rendered", WRONG_CONFIGURATION)


def _warn(text: str) -> None:
    note(f"warning: {text}", fg="yellow")


class _Dumper(yaml.SafeDumper):
    """YAML that each parser reads in the same way.

    PyYAML writes ``1e3`` and ``y`` unquoted, because it reads them as strings; kubectl's parser reads a number and a
    boolean. So a string is quoted unless each parser reads it as a string.
    """

    def ignore_aliases(self, _data: Any) -> bool:
        return True

    def text(self, data: str) -> yaml.ScalarNode:
        plain = _PLAIN.fullmatch(data) and data.lower() not in _WORDS
        as_block = "\n" in data and data.isascii()
        style = None if plain else "|" if as_block else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _Dumper.text)


def _as_yaml(objects: list[dict[str, Any]]) -> str:
    text: str = yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, explicit_start=True, width=120)
    return text


def _as_json(objects: list[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=2) + "\n"


_FORMATS: Final = {"yaml": _as_yaml, "json": _as_json}
