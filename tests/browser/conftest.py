"""A browser, and gateways for it: ``make browser``."""

import shutil

import pytest

from tests.browser.dashboards import Dashboard, Gateway, example
from tests.examples import patient_examples
from tests.integration.fixtures import certificates, pair, trust

__all__ = ["certificates", "pair", "trust"]

_NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def chromium():
    """The browser."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - nothing else needs it

    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.fail("there is no chromium: run `make browser`, or install it")
    with sync_playwright() as playwright:
        # Containers run tests as root, for which chromium has no sandbox.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def gateways(pair, trust):
    """Start gateways: ``gateways(policies, *flags)``; they run to the module's end."""
    started = []

    def start(policies, *flags, **options):
        started.append(Gateway(policies, trust, *pair, *flags, **options))
        return started[-1].ready()

    yield start
    for each in started:
        each.stop()


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    """The policies of the examples."""
    return patient_examples(tmp_path_factory.mktemp("policies")) / "policies"


@pytest.fixture(scope="module")
def gateway(gateways, policies):
    """A gateway with the examples that has judged some reviews."""
    served = gateways(policies)
    pod = example("1")
    served.send(pod, phase="mutate")
    served.send(pod)
    served.send(example("7"))
    return served


@pytest.fixture
def open_dashboard(chromium):
    """Open a gateway's dashboard: ``open_dashboard(gateway, query, **context)``. What must not happen in it did not."""
    opened = []

    def open_one(served, query="", *, expected=(), **options):
        context = chromium.new_context(viewport={"width": 1200, "height": 850}, **options)
        dashboard = Dashboard(context, served.dashboard)
        opened.append((context, dashboard, expected))
        return dashboard.open(query)

    yield open_one
    for context, dashboard, expected in opened:
        try:
            dashboard.close(expected)
        finally:
            context.close()
