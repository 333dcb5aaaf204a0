"""What is made in deploy/chart: the definitions of the gateway's kinds, from their readers, and Grafana's dashboards.

``python -m deploy.generator`` writes them; a test fails when they are stale.
"""

from pathlib import Path
from typing import Final

import yaml

from deploy.generator.fleet import FLEET
from deploy.generator.manifests import definitions
from deploy.generator.schemas import Schema
from deploy.generator.subjects import POLICY, WORKER

ROOT: Final = Path(__file__).parents[2]
CRDS: Final = Path("deploy/chart/crds")
DASHBOARDS: Final = Path("deploy/chart/dashboards")
COMMAND: Final = "make crds"

_HEAD: Final = f"# Made by `{COMMAND}` from gateway/policies and deploy/generator; change those, not this.\n"


def manifests() -> dict[Path, str]:
    """The text of each file, by its path from the project's folder."""
    crds = {CRDS / f"{made['spec']['names']['plural']}.yaml": _HEAD + _yaml(made) for made in definitions().values()}
    return crds | {DASHBOARDS / f"{made.subject}.json": made.json() for made in (FLEET, POLICY, WORKER)}


class _Dumper(yaml.SafeDumper):
    """Writes what occurs twice twice, instead of an anchor and an alias."""

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True


def _yaml(document: Schema) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=120)


def stale() -> list[Path]:
    """The files that are missing, or not as they would be written now, and those that would not be written."""
    made = manifests()
    others = {
        path.relative_to(ROOT) for folder in (CRDS, DASHBOARDS) for path in (ROOT / folder).glob("*")
    } - made.keys()
    drifted = [path for path, text in made.items() if not (ROOT / path).is_file() or (ROOT / path).read_text() != text]
    return [*drifted, *sorted(others)]
