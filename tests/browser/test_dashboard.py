"""The dashboard in a real browser: what an operator does with it."""

import json
import os
import re
import signal
from datetime import UTC, datetime, timedelta

import pytest

from tests.browser.dashboards import KINDS, example, free_port, many_policies
from tests.examples import EXAMPLES
from tests.integration.test_processes import process

PAGES = {"reviews": "", "policies": "?page=policies", "workers": "?page=workers", "health": "?page=health"}

HOSTILE = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>"


def test_a_review_appears_by_itself(gateway, open_dashboard):
    """Without a reload, with its outcome, its user and the policy that denied it."""
    dashboard = open_dashboard(gateway)
    dashboard.has("live")
    gateway.send(example("7"), name="just-now")
    row = dashboard.row("just-now")
    row.wait_for()
    assert "denied" in row.inner_text()
    assert "samples/no-privileged.samples.example.com" in row.inner_text()


def test_a_review_has_its_waterfall_and_its_object(gateway, open_dashboard):
    """Each policy has its bars and its time; each changed line the colour and the name of its policy."""
    dashboard = open_dashboard(gateway)
    dashboard.page.get_by_role("link", name="CREATE pods t/p1").last.click()
    dashboard.page.locator(".object").wait_for()
    steps = dashboard.page.get_by_role("region", name="Where the time went")
    for name in (
        "read",
        "match",
        "calls",
        "samples/default-labels.samples.example.com",
        "samples/sidecar.samples.example.com",
    ):
        assert steps.locator("tr", has_text=name).first.locator(".bar").count() >= 1
    bars = steps.locator(".bar").evaluate_all("bars => bars.map(bar => bar.getBoundingClientRect().width)")
    assert len(bars) > 8
    assert min(bars) > 0
    line = dashboard.page.locator(".object li", has_text="managed-by: admission-gateway")
    assert "samples/default-labels.samples.example.com" in line.inner_text()
    colour = "element => getComputedStyle(element).backgroundColor"
    other = dashboard.page.locator(".object li", has_text="image: registry.example.com").first
    unchanged = dashboard.page.locator(".object li", has_text="namespace: t")
    assert len({each.evaluate(colour) for each in (line, other, unchanged)}) == 3


def test_a_denial_says_who_and_why(gateway, open_dashboard):
    """From the list to the line of the policy in one click: message, reason, place in its file."""
    dashboard = open_dashboard(gateway, "?outcome=denied")
    dashboard.page.get_by_role("link", name="CREATE pods default/kr-privileged").first.click()
    dashboard.has("privileged containers are not allowed")
    report = dashboard.page.locator(".report", has_text="no-privileged")
    for text in ("DENIED", "privileged containers are not allowed", "validating.yaml:", "samples"):
        assert text in report.inner_text()
    assert report.get_by_role("link").get_attribute("href").startswith("https://kubernetes.io/docs/")


def test_the_uid_of_a_denial_leads_to_its_review(gateway, open_dashboard):
    """Into the search field with it; from there to the other decisions about the same request."""
    uids = [gateway.send(example("7"), phase=phase, name="asked-about")["uid"] for phase in ("mutate", "validate")]
    dashboard = open_dashboard(gateway)
    page = dashboard.page
    page.get_by_label("Search").fill(uids[1])
    dashboard.row("asked-about").get_by_role("link").click()
    dashboard.has("Other decisions about the same request")
    page.locator(".review li a").first.click()
    page.get_by_text(uids[0]).wait_for()
    assert page.locator(".object").count() == 1


def test_a_refused_decision_is_shown_first(gateway, open_dashboard):
    """Before the allowed one of the same uid, and among the other decisions about the request."""
    uid = "00000000-0000-4000-8000-000000000001"
    for phase in ("mutate", "validate"):
        gateway.send(example("7"), phase=phase, name="one-uid", uid=uid)
    dashboard = open_dashboard(gateway, f"?page=review&uid={uid}")
    dashboard.page.locator(".object").nth(1).wait_for()
    assert dashboard.page.locator("h2 .badge").all_inner_texts() == ["denied", "allowed"]
    other = gateway.send(example("7"), phase="mutate", name="one-uid")["uid"]
    gateway.send(example("7"), name="one-uid")
    dashboard.open(f"?page=review&uid={other}")
    dashboard.has("Other decisions about the same request")
    outcomes = dashboard.page.locator(".review li .badge").all_inner_texts()
    assert outcomes == sorted(outcomes, reverse=True)
    assert set(outcomes) == {"denied", "allowed"}


def test_a_review_has_one_duration_and_one_time(gateway, open_dashboard):
    """The list and the review's page have the same, in UTC, wherever the browser is."""
    gateway.send(example("7"), name="measured")
    dashboard = open_dashboard(gateway, "?q=measured", timezone_id="Asia/Kolkata")
    page = dashboard.page
    row = dashboard.row("measured").first
    row.wait_for()
    assert page.locator("thead th").first.inner_text() == "Time (UTC)"
    cells = row.locator("td")
    time, spent = cells.first.inner_text(), cells.last.inner_text()
    row.get_by_role("link").click()
    page.locator(".object").wait_for()
    terms = dict(
        zip(page.locator(".review dt").all_inner_texts(), page.locator(".review dd").all_inner_texts(), strict=True)
    )
    day, shown, zone = terms["Time"].split(" ")
    assert (len(day), shown[:8], zone) == (10, time[:8], "UTC")
    assert terms["Duration"].split(" of ")[0] == spent


def test_the_rates_are_of_the_last_minute(gateway, open_dashboard):
    """From the first moment on, before anything is measured; the axis is in UTC, too."""
    dashboard = open_dashboard(gateway, timezone_id="Asia/Kolkata")
    dashboard.page.add_init_script(TEXTS)
    begin = datetime.now(UTC) - timedelta(seconds=61)
    dashboard.open()
    dashboard.has("Last 3 s")
    drawn = [text for text in dashboard.page.evaluate("window.texts") if re.fullmatch(r"\d\d:\d\d:\d\d", text)]
    assert len(drawn) > 3
    last = (datetime.now(UTC) - begin).total_seconds()
    for text in drawn:
        after = datetime.strptime(f"{begin:%Y-%m-%d} {text} +0000", "%Y-%m-%d %H:%M:%S %z") - begin
        assert after.total_seconds() % 86400 <= last


def test_a_review_that_is_not_retained(gateway, open_dashboard):
    """The page says what was searched, and what finds it; the list offers to look for a uid that it does not have."""
    dashboard = open_dashboard(gateway, expected=["404"])
    uid = "00000000-0000-4000-8000-000000000000"
    dashboard.page.get_by_label("Search").fill(uid)
    dashboard.page.get_by_role("link", name=f"Open the review {uid}").click()
    dashboard.has(f'no decision of review "{uid}" is retained')
    dashboard.has("run `admission-gateway explain UID` in each pod")


def test_filters_that_match_nothing_can_be_cleared(gateway, open_dashboard):
    """The page says so, and shows all reviews after a click."""
    dashboard = open_dashboard(gateway, "?outcome=denied&q=no-such-review")
    page = dashboard.page
    dashboard.has("No review matches.")
    assert dashboard.inaccessible() == []
    page.get_by_role("link", name="Clear the filters").click()
    dashboard.row("kr-privileged").first.wait_for()
    assert (page.get_by_label("Search").input_value(), page.get_by_label("Outcome").input_value()) == ("", "")
    assert page.get_by_role("link", name="Clear the filters").count() == 0


def test_a_paused_list_has_no_new_reviews(gateway, open_dashboard):
    """Whatever is searched for meanwhile; they come when it goes on."""
    dashboard = open_dashboard(gateway)
    page = dashboard.page
    dashboard.row("kr-privileged").first.wait_for()
    pause = page.get_by_role("button", name="Pause the list")
    pause.click()
    gateway.send(example("7"), name="while-paused")
    page.evaluate(ARRIVED)
    page.get_by_label("Search").fill("pods")
    page.get_by_label("Search").fill("")
    dashboard.row("kr-privileged").first.wait_for()
    assert dashboard.row("while-paused").count() == 0
    pause.click()
    dashboard.row("while-paused").wait_for()


def test_a_policy_leads_to_its_denials_and_to_its_file(gateway, open_dashboard):
    """Its row says where it is configured; a click on its name lists the reviews that it denied, and no others."""
    dashboard = open_dashboard(gateway, "?page=policies")
    page = dashboard.page
    row = dashboard.row("no-privileged")
    row.wait_for()
    assert re.search(r"validating\.yaml:\d+: policies\[\d+\]", row.inner_text())
    row.get_by_role("link").click()
    dashboard.has("Only reviews that samples/no-privileged.samples.example.com denied, or in which it failed.")
    dashboard.row("kr-privileged").first.wait_for()
    outcomes = page.locator("tbody td .badge").all_inner_texts()
    assert set(outcomes) == {"denied"}
    page.get_by_role("link", name="Clear the filters").click()
    dashboard.row("t/p1").first.wait_for()


def test_a_policy_has_its_durations_and_its_cache_hits(gateways, policies, open_dashboard):
    """p50 and p99 of its calls within the buckets that were counted, and the share of lookups that saved a call."""
    served = gateways(policies)
    for _ in range(4):
        served.send(example("1"), phase="mutate")
    dashboard = open_dashboard(served, "?page=policies")
    row = dashboard.row("default-labels")
    row.wait_for()
    read = json.loads(served.admin("/ui/api/policies"))
    (counted,) = [each for each in read["policies"] if "default-labels" in each["name"]]
    p50, p99, hits = (row.locator("td").nth(index).inner_text() for index in (2, 3, 8))
    (bucket, *_) = [index for index, count in enumerate(counted["durations"]) if count]
    bounds = [0, *read["buckets"]]
    (last, *_) = [index for index, count in enumerate(counted["durations"]) if count][::-1]
    assert bounds[bucket] <= seconds(p50) <= seconds(p99) <= bounds[last + 1]
    assert (counted["hits"], counted["lookups"], hits) == (3, 4, "75 %")
    assert dashboard.row("no-privileged").locator("td").nth(8).inner_text() == "no cache"


ARRIVED = """
import("/ui/store.js").then(({ listen, store }) => new Promise((resolve) => {
  const look = () => store.reviews.some((each) => each.name === "while-paused") && resolve();
  listen("reviews", look);
  look();
}))
"""
"""Waits until the page has been sent the review, whether it lists it or not."""


TEXTS = """
window.texts = [];
const { fillText } = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
  window.texts.push(String(text));
  fillText.call(this, text, ...rest);
};
"""
"""Collects all texts that are drawn."""


def seconds(text):
    """The seconds of a duration as the page writes it."""
    number, unit = text.split(" ")
    return float(number) * {"µs": 1e-6, "ms": 1e-3, "s": 1}[unit]


def test_filters_survive_a_reload_and_the_way_back(gateway, open_dashboard):
    """They stand in the address."""
    dashboard = open_dashboard(gateway)
    page = dashboard.page
    page.get_by_label("Outcome").select_option("denied")
    page.get_by_label("Search").fill("kr-privileged")
    for again in (page.reload, lambda: (page.get_by_role("link", name="kr-privileged").first.click(), page.go_back())):
        again()
        page.get_by_role("link", name="kr-privileged").first.wait_for()
        assert page.get_by_label("Outcome").input_value() == "denied"
        assert page.get_by_label("Search").input_value() == "kr-privileged"
        assert page.get_by_role("link", name="t/p1").count() == 0
    page.goto(f"{gateway.dashboard}?page=policies&q=validating&sort=denials")
    page.reload()
    dashboard.row("no-privileged").wait_for()
    assert dashboard.row("default-labels").count() == 0
    assert page.locator("th[aria-sort=descending]").inner_text() == "Denials"


def test_everything_is_reached_by_keyboard(gateway, open_dashboard):
    """Tab, Enter and typing are enough: skip link, pages, filters, reviews, sorting, and the way back."""
    dashboard = open_dashboard(gateway)
    page = dashboard.page
    dashboard.row("kr-privileged").first.wait_for()
    dashboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to the content"
    dashboard.tab_to("Policies")
    dashboard.press("Enter")
    page.get_by_role("heading", name="Policies").wait_for()
    assert page.evaluate("document.activeElement.id") == "main"
    dashboard.row("no-privileged").wait_for()
    dashboard.tab_to("Denials")
    dashboard.press("Enter")
    assert page.locator("th[aria-sort]").inner_text() == "Denials"
    dashboard.press("Shift+Tab", "Enter")
    assert page.locator("th[aria-sort]").inner_text() == "Answers"
    dashboard.open()
    dashboard.row("kr-privileged").first.wait_for()
    dashboard.tab_to("Reviews")
    page.get_by_label("Search").focus()
    page.keyboard.type("kr-privileged")
    dashboard.tab_to("Pause the list")
    dashboard.press("Space")
    assert page.get_by_role("button", name="Pause the list").get_attribute("aria-pressed") == "true"
    dashboard.tab_to("CREATE pods default/kr-privileged")
    dashboard.press("Enter")
    dashboard.has("privileged containers are not allowed")
    dashboard.tab_to("← All reviews")
    dashboard.press("Enter")
    page.get_by_label("Search").wait_for()
    assert page.get_by_label("Search").input_value() == "kr-privileged"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_page_is_accessible_in_light_and_dark(gateway, open_dashboard, scheme):
    """By axe's rules for WCAG 2.1 AA; contrast too. A picture of each page is left in the artifacts."""
    dashboard = open_dashboard(gateway, color_scheme=scheme)
    page = dashboard.page
    for name, query in PAGES.items():
        dashboard.open(query)
        page.locator("tbody tr").first.wait_for()
        assert dashboard.inaccessible() == [], name
        dashboard.screenshot(f"{name}-{scheme}.png")
    dashboard.open()
    page.get_by_role("link", name="CREATE pods t/p1").last.click()
    page.locator(".object").wait_for()
    assert dashboard.inaccessible() == []
    dashboard.screenshot(f"review-{scheme}.png", full_page=True)
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (back == "rgb(255, 255, 255)") == (scheme == "light")


def test_pictures_for_the_docs(gateways, open_dashboard):
    """What docs/observe.md shows: the examples, and their paths as in a clone."""
    gateway = gateways(os.path.relpath(EXAMPLES / "policies"))
    dashboard = open_dashboard(gateway)
    dashboard.page.set_viewport_size({"width": 1000, "height": 640})
    for name in ("1", "2", "3", "5", "8"):
        for phase in ("mutate", "validate"):
            gateway.send(example(name), phase=phase)
    dashboard.has("Last 5 s")
    dashboard.screenshot("dashboard-reviews.jpg", quality=80)
    dashboard.page.get_by_role("link", name="CREATE pods t/p1").nth(1).click()
    dashboard.page.locator(".object").wait_for()
    dashboard.screenshot("dashboard-review.jpg", full_page=True, quality=70)
    for name in ("Policies", "Workers", "Health"):
        dashboard.page.get_by_role("link", name=name, exact=True).click()
        dashboard.page.get_by_role("heading", name=name, exact=True).wait_for()
        dashboard.page.locator("tbody tr").first.wait_for()
        dashboard.screenshot(f"dashboard-{name.lower()}.jpg", quality=70)


def test_texts_of_others_are_never_markup(gateway, open_dashboard):
    """Names, users, labels and messages of workers: what looks like HTML is shown as it is, and runs nothing."""
    pod = example("7")
    request = pod["request"]
    container = {**request["object"]["spec"]["containers"][0], "name": HOSTILE, "image": HOSTILE}
    hostile = {
        **request["object"],
        "metadata": {"name": HOSTILE, "namespace": "default", "labels": {HOSTILE: HOSTILE}},
        "spec": {**request["object"]["spec"], "containers": [container]},
    }
    for phase in ("mutate", "validate"):
        gateway.send(
            pod, phase=phase, name=HOSTILE, userInfo={"username": HOSTILE, "groups": [HOSTILE]}, object=hostile
        )
    dashboard = open_dashboard(gateway)
    link = dashboard.page.get_by_role("link", name=HOSTILE)
    link.first.wait_for()
    for number in (0, 1):
        link.nth(number).click()
        dashboard.page.locator(".object").wait_for()
        assert HOSTILE in dashboard.page.locator("main").inner_text()
        dashboard.page.go_back()
        link.first.wait_for()
    dashboard.open("?page=%3Cimg%20src%3Dx%3E&uid=%3Cscript%3E&q=%3Cscript%3E&outcome=%22%3E")
    dashboard.page.get_by_label("Search").wait_for()
    assert dashboard.page.evaluate("window.hacked") is None
    assert dashboard.page.locator("main img, main script").count() == 0


def test_a_token_opens_it(gateways, policies, open_dashboard, tmp_path):
    """Without one there is a form and no data; a wrong one is refused; the right one is kept for the tab."""
    tokens = tmp_path / "tokens"
    tokens.write_text("secret-of-the-operators\n")
    served = gateways(policies, "--admin-token-file", tokens)
    dashboard = open_dashboard(served, expected=["401"])
    page = dashboard.page
    page.get_by_label("Token").fill("wrong")
    page.keyboard.press("Enter")
    dashboard.has("The gateway refused this token.")
    assert dashboard.inaccessible() == []
    assert page.locator("table").count() == 0
    page.get_by_label("Token").fill("secret-of-the-operators")
    page.get_by_role("button", name="Open the dashboard").click()
    dashboard.has("live")
    dashboard.screenshot("token.png")
    served.send(example("7"), name="after-the-token")
    dashboard.row("after-the-token").click()
    page.reload()
    dashboard.row("after-the-token").wait_for()
    assert page.context.cookies() == []
    other = page.context.new_page()
    other.goto(served.dashboard)
    other.get_by_label("Token").wait_for()
    other.close()


def test_a_restarted_gateway_is_found_again(gateways, policies, open_dashboard):
    """The page says that the connection is lost, connects again by itself, and begins a new list."""
    port = free_port()
    served = gateways(policies, admin_port=port)
    served.send(example("7"), name="before-the-restart")
    dashboard = open_dashboard(served, expected=["ERR_", "Failed to load"])
    dashboard.row("before-the-restart").wait_for()
    served.stop()
    dashboard.has("reconnecting")
    again = gateways(policies, admin_port=port)
    again.send(example("7"), name="after-the-restart")
    dashboard.row("after-the-restart").wait_for()
    dashboard.has("live")
    assert dashboard.row("before-the-restart").count() == 0


def test_several_processes_are_one_replica(gateways, policies, open_dashboard):
    """Reviews of all are listed, each with its object; numbers are added up; a killed process is replaced."""
    served = gateways(policies, "--processes", "2")
    dashboard = open_dashboard(served, expected=["404", "ERR_", "503"])
    page = dashboard.page
    dashboard.has("live")
    for number in range(4):
        served.send(example("7"), name=f"pod-{number}")
    dashboard.has("Since the start: 4 reviews")
    for number in range(4):
        dashboard.row(f"pod-{number}").get_by_role("link").click()
        page.locator(".object").wait_for()
        page.go_back()
    dashboard.open("?page=policies&q=no-privileged")
    answers = page.locator("tbody tr td").nth(4)
    answers.wait_for()
    assert answers.inner_text() == "4"
    dashboard.open()
    dashboard.has("live")
    os.kill(process(served, 2), signal.SIGKILL)
    served.logged("a process has ended and is started again")
    for number in range(4):
        served.send(example("7"), name=f"after-it-{number}")
    for number in range(4):
        dashboard.row(f"after-it-{number}").wait_for()


def test_two_thousand_policies_stay_usable(gateways, open_dashboard, tmp_path):
    """A part of them is shown, and a search finds each; those that cannot be called are a warning on every page."""
    (tmp_path / "policies.yaml").write_text("\n---\n".join(many_policies(2000)))
    served = gateways(tmp_path, "--worker-startup-timeout", "0.1")
    dashboard = open_dashboard(served, "?page=policies")
    page = dashboard.page
    dashboard.has("200 of 2,000 policies shown")
    dashboard.has("2,000 policies cannot be called")
    page.get_by_label("Search").fill("p1999.")
    dashboard.has("1 of 2,000 policies shown")
    assert "cannot be called" in dashboard.row("p1999").inner_text()
    page.get_by_label("Search").fill("")
    page.get_by_role("button", name="Show 200 more").click()
    dashboard.has("400 of 2,000 policies shown")
    dashboard.open("?page=health")
    dashboard.has("1800 more; the log has all of them.")


def test_what_an_operator_must_know_is_above_every_page(gateways, policies, open_dashboard, tmp_path):
    """Ignored failures, a rejected configuration, and policies that cannot be called: each with the reason."""
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "policies.yaml").write_text("\n---\n".join(many_policies(2)))
    served = gateways(folder, "--worker-startup-timeout", "0.1", "--reload-interval", "0.05")
    secret = example("4")
    kinds = {name: {**secret["request"][name], **value} for name, value in KINDS.items()}
    served.send(secret, **kinds, name="passed-unjudged")
    dashboard = open_dashboard(served)
    dashboard.has("2 failures were ignored since the start (failurePolicy Ignore), the last at")
    dashboard.page.get_by_role("link", name="Show the reviews").click()
    assert "failed open" in dashboard.row("passed-unjudged").inner_text()
    (folder / "policies.yaml").write_text("\n---\n".join(many_policies(2)).replace('"CREATE"', '"CREATED"'))
    dashboard.has("the configuration read last has")
    dashboard.open("?page=health")
    dashboard.has('Unsupported value: "CREATED"')
    dashboard.has("team-00/p0001.example.com")
    assert "in 36" in dashboard.page.locator("dl").first.inner_text()
    dashboard.screenshot("warnings.png")
    dashboard.open("?page=workers")
    assert "away" in dashboard.row("away").inner_text()
    assert dashboard.inaccessible() == []
