"""The output of a hook's ``--config``, of which tests change one member at a time."""

import copy
import json

import pytest

from gateway.hooks.configuration.policies import Hook, hooks_text
from gateway.hooks.configuration.reader import read_hook_configuration

RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}


@pytest.fixture
def binding():
    """An admission binding, with these fields."""
    return lambda name="a.example.com", **fields: {"name": name, "rules": [copy.deepcopy(RULE)], **fields}


@pytest.fixture
def output():
    """The output with these lists of bindings."""
    return lambda **members: json.dumps({"configVersion": "v1", **members}).encode()


@pytest.fixture
def errors():
    """``PATH: MESSAGE`` of each error in an output."""

    def read(output):
        reading = read_hook_configuration(output, "hook --config")
        assert (reading.configuration is None) is bool(reading.errors)
        return [f"{error.place.path}: {error.message}" for error in reading.errors]

    return read


@pytest.fixture
def read():
    """The configuration in an output without errors."""

    def reading(output):
        made = read_hook_configuration(output, "hook --config")
        assert made.errors == ()
        return made.configuration

    return reading


@pytest.fixture
def text(read):
    """The text that configures hooks, given their paths and outputs."""

    def made(name="shell-operator-hooks-hooks", **outputs):
        hooks = [Hook(path=path, name=f"/hooks/{path}", configuration=read(each)) for path, each in outputs.items()]
        return hooks_text(hooks, name="/hooks", directory="/hooks", configuration=name)

    return made
