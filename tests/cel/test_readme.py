"""gateway/cel/README.md is true."""

import doctest
import re
from pathlib import Path

from gateway.cel import environment, versions
from gateway.cel.libraries.catalog import functions_of
from gateway.cel.versions import Version

README = Path(__file__).parents[2] / "gateway" / "cel" / "README.md"


def test_the_examples_print_what_they_say():
    """Every block is executed, and prints what stands in it."""
    blocks = "\n".join(re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL))
    example = doctest.DocTestParser().get_doctest(blocks, {}, "README.md", str(README), 0)
    assert len(example.examples) > 10
    assert doctest.DocTestRunner().run(example).failed == 0


def test_the_example_of_the_front_door_prints_what_it_says():
    """The module's own example is executed as well."""
    results = doctest.testmod(environment)
    assert (results.failed, results.attempted) == (0, 3)


def test_the_modules_it_names_are_there():
    """The table of modules names modules of the package, and names that they have."""
    table = re.findall(r"^\| (`[a-z_`, ]+`) \| (.*) \|$", README.read_text(), re.MULTILINE)
    modules = [name for cell, _ in table for name in re.findall(r"`(\w+)`", cell)]
    assert "environment" in modules
    assert all((README.parent / f"{name}.py").exists() for name in modules)


def test_the_newest_version_is_the_one_it_names():
    """The README and the package are about the same version of Kubernetes."""
    assert f"kube-apiserver {versions.NEWEST}:" in README.read_text()


def test_functions_that_it_says_kubernetes_has_not_are_not_there():
    """None of them can be called in any version."""
    assert not {"math.abs", "base64.encode", "cel.bind"} & functions_of(Version(1, 36)).keys()
