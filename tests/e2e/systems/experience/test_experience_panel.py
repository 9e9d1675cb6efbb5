"""The panel of experience: an admin sees and splits patterns, and sees results of checkpoints."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import jwt
import pytest
from playwright.sync_api import Browser, Page

from rag_assets.privacy.masker import get_masker
from rag_assets.quality.judgements import UNANSWERED, JudgedQuestion, Judgement
from rag_assets.quality.store import store_questions
from rag_assets.systems.experience.model import CheckpointDraft, EntryDraft, ProjectDraft
from rag_assets.systems.experience.service import Experience
from tests.browser import chromium
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.panel_site import ENVIRONMENT, SECRET
from tests.security.service_process import started
from tests.watched_page import Watched, follow, sign_in, url_at_host

TENANT = "lessons"
OTHERS = "other-lessons"
_PATH = "src/" + "a_folder_with_a_long_name/" * 4 + "main.py"
DIFFERENT: list[tuple[str, str, dict[str, Any]]] = [
    (
        f"The nightly import of prices stops in {_PATH} after the supplier changed a column",
        "1. Read columns by their names.\n2. Refuse a file that lacks one of them.",
        {"technology": "PostgreSQL", "error_message": "KeyError: 'sku'"},
    ),
    (
        "The search page is blank after a release",
        "Clear the cache of the pages at each release.",
        {"technology": "nginx", "task_type": "release"},
    ),
    (
        "Two invoices have the same number",
        "Take numbers from a sequence.",
        {"technology": "PostgreSQL", "agent_type": "backend-developer"},
    ),
]
PROJECTS = {UUID(int=1): "Harbor", UUID(int=2): "Meadow"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def origin(
    shared_installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Serve a tenant whose two projects solved the same problem, and another tenant."""
    source = {"name": "experience", "type": "experience"}
    shared_installation.add_tenant(TENANT, profile="experience", **FAST, sources=[source])
    shared_installation.add_tenant(OTHERS, profile="experience", **FAST, sources=[source])
    driver = Driver(shared_installation)
    driver.sync(TENANT)
    session = driver.session
    experience = Experience(session.catalog, get_masker(session.settings.local))
    for project, name in PROJECTS.items():
        experience.put_project(TENANT, project, ProjectDraft(name=name))
        capture(experience, project, "The build fails\n" + "on every agent " * 20)
        experience.request_checkpoint(
            TENANT, CheckpointDraft(checkpoint_type="phase_completion", project_id=project), by="t"
        )
        driver.sync(TENANT)
    capture(experience, project, "Still staged")
    experience.put_project(OTHERS, project, ProjectDraft(name="A quay with a rather long name"))
    for problem, steps, more in DIFFERENT:
        capture(experience, project, problem, OTHERS, solution_steps=steps, **more)
    draft = CheckpointDraft(checkpoint_type="phase_completion", project_id=project)
    experience.request_checkpoint(OTHERS, draft, by="t")
    driver.sync(OTHERS)
    log = tmp_path_factory.mktemp("panel") / "log"
    with started(shared_installation, log, **ENVIRONMENT) as (_, port):
        yield f"http://127.0.0.1:{port}"


def capture(
    experience: Experience, project: UUID, problem: str, tenant: str = TENANT, **more: Any
) -> None:
    draft: dict[str, Any] = {
        "entry_type": "failure_solution",
        "project_id": project,
        "agent_type": "tester",
        "failure_description": problem,
        "solution_steps": "1. Pin the version.\n2. <script>alert(1)</script>",
        "success_verified": True,
    }
    experience.capture(tenant, EntryDraft(**draft | more), by="jwt:conductor")


def enter(page: Page, origin: str, tenant: str = TENANT) -> None:
    """Sign in with an admin's token."""
    claims = {"sub": "dana", "exp": int(time.time()) + 600, "role": "admin", "tenants": [tenant]}
    sign_in(page, origin, jwt.encode(claims, SECRET))
    page.wait_for_url("**/panel/experience")


@pytest.mark.ci
def test_an_admin_sees_a_pattern_and_takes_it_apart(origin: str, browser: Browser) -> None:
    with browser.new_context(viewport={"width": 1280, "height": 860}) as context:
        watched = Watched(context.new_page())
        page = watched.page
        enter(page, origin)
        rows = page.get_by_role("list", name="Patterns").locator(":scope > li")
        assert rows.count() == 1
        assert "The build fails" in rows.first.inner_text()
        watched.shot("experience")

        follow(page.get_by_role("link", name="The build fails"))
        page.get_by_role("heading", name="Less Common: 2 successes, 0 failures").wait_for()
        assert "<script>alert(1)</script>" in page.locator("pre").nth(1).inner_text()
        assert page.get_by_text("Harbor").count() >= 1
        watched.shot("pattern")

        follow(page.get_by_role("button", name="Split off the entry of Meadow, number 2"))
        page.get_by_role("heading", name="Less Common: 1 success, 0 failures").wait_for()
        split = page.url.rpartition("/")[2]
        follow(page.get_by_role("link", name="Patterns").first)
        assert rows.count() == 2

        other = rows.get_by_role("link").first
        if split in (other.get_attribute("href") or ""):
            other = rows.get_by_role("link").nth(1)
        follow(other)
        page.get_by_label("Id of the other pattern").fill(split)
        follow(page.get_by_role("button", name="Merge"))
        page.get_by_role("heading", name="Less Common: 2 successes, 0 failures").wait_for()

        follow(page.get_by_role("link", name="Checkpoints"))
        page.get_by_role("heading", name="Checkpoints").wait_for()
        assert page.get_by_text("1 entry waits for a checkpoint.").is_visible()
        assert page.locator(".state").all_inner_texts() == ["done", "done"]
        watched.shot("checkpoints")

        page.go_back()
        follow(page.get_by_role("button", name="Take back the entry of Harbor, number 1"))
        page.wait_for_url("**/panel/experience")
        assert rows.count() == 1
        assert watched.errors == []


def test_different_problems_are_merged_once_somebody_confirms(
    origin: str, browser: Browser
) -> None:
    with browser.new_context(viewport={"width": 1280, "height": 860}) as context:
        watched = Watched(context.new_page())
        page = watched.page
        enter(page, origin, OTHERS)
        rows = page.get_by_role("list", name="Patterns").locator(":scope > li")
        assert rows.count() == 3
        page.get_by_label("Search the entries").fill("RELEASE blank")
        follow(page.get_by_role("button", name="Show"))
        assert rows.count() == 1
        follow(rows.get_by_role("link"))
        follow(page.get_by_role("link", name="Choose from the list"))
        assert rows.count() == 2
        page.get_by_text("Filters").click()
        page.get_by_label("Agent").select_option("backend-developer")
        follow(page.get_by_role("button", name="Show"))
        assert rows.count() == 1

        follow(page.get_by_role("button", name="Merge into this one, pattern 1"))
        page.get_by_role("heading", name="Merge different problems?").wait_for()
        shown = page.locator("pre").all_inner_texts()
        assert any("search page is blank" in text for text in shown)
        assert any("Take numbers from a sequence." in text for text in shown)
        watched.shot("merge")
        follow(page.get_by_role("link", name="Keep them apart"))
        page.get_by_role("heading", name="1 entry").wait_for()

        follow(page.get_by_role("link", name="Choose from the list"))
        follow(page.get_by_role("button", name="Two invoices"))
        follow(page.get_by_role("button", name="Merge them anyway"))
        page.get_by_role("heading", name="2 entries").wait_for()
        entries = page.get_by_role("list", name="Entries")
        assert "The search page is blank" in entries.inner_text()
        assert "Two invoices have the same number" in entries.inner_text()
        merges = page.get_by_role("list", name="Merges")
        assert "Clear the cache of the pages" in merges.inner_text()
        watched.shot("merged")
        follow(page.get_by_role("button", name="Undo merge 1"))
        page.get_by_role("heading", name="1 entry").wait_for()
        assert "The search page is blank" in page.locator("pre").first.inner_text()
        follow(page.get_by_role("link", name="Patterns").first)
        assert rows.count() == 3
        # The form responds with 409, which the browser's console reports.
        assert all("409" in error for error in watched.errors)


def test_a_trial_shows_the_block_and_the_scores(origin: str, browser: Browser) -> None:
    with browser.new_context(viewport={"width": 1280, "height": 860}) as context:
        watched = Watched(context.new_page())
        page = watched.page
        enter(page, origin, OTHERS)
        follow(page.get_by_role("link", name="Try it"))
        page.get_by_label("What failed").fill("The search page is blank after a release")
        follow(page.get_by_role("button", name="Try", exact=True))
        block = page.get_by_role("region", name="Text of the block").inner_text()
        assert block.startswith("[ORCHESTRATOR CONTEXT: Historical Knowledge]")
        assert "Clear the cache of the pages" in block
        assert page.get_by_label("Score").first.is_visible()
        assert page.get_by_label("What failed").input_value().startswith("The search page")
        watched.shot("trial")

        page.get_by_label("Ask", exact=True).select_option("task")
        page.get_by_label("Technology of a task").fill("COBOL")
        follow(page.get_by_role("button", name="Try", exact=True))
        assert page.get_by_text("Nothing: the agent gets its basic context alone.").is_visible()
        assert page.get_by_text("Technology: no entry has this value").is_visible()
        page.get_by_label("Technology of a task").fill("nginx")
        follow(page.get_by_role("button", name="Try", exact=True))
        assert (
            "Clear the cache" in page.get_by_role("region", name="Text of the block").inner_text()
        )
        page.get_by_label("What failed").fill("  ")
        follow(page.get_by_role("button", name="Try", exact=True))
        assert "task_description" in page.get_by_role("alert").filter(visible=True).inner_text()

        # A trial is not a question, and is not counted.
        follow(page.get_by_role("link", name="Patterns"))
        assert page.locator("dt", has_text="Questions").locator("+ dd").inner_text() == "0"
        assert watched.errors == []


def test_an_admin_measures_and_sets_the_threshold(  # noqa: PLR0915 - one visit, step by step
    origin: str, browser: Browser, shared_installation: Installation
) -> None:
    with browser.new_context(viewport={"width": 390, "height": 844}) as context:
        watched = Watched(context.new_page())
        page = watched.page
        enter(page, origin)
        follow(page.get_by_role("link", name="Try it"))
        follow(page.get_by_role("link", name="Measure the threshold"))
        problem = page.get_by_role("alert").filter(visible=True)
        measure = page.get_by_role("button", name="Measure")
        follow(measure)
        assert "no past tasks" in problem.inner_text()
        for task in ("The build fails on every agent", "A cake for the summer party"):
            page.goto(url_at_host(page, "/panel/experience/try"))
            page.get_by_label("What failed").fill(task)
            follow(page.get_by_role("button", name="Try", exact=True))
        page.goto(url_at_host(page, "/panel/experience/threshold"))
        heading = page.get_by_role("heading", name="2 questions")
        # Searches are recorded in the background.
        for _ in range(20):
            follow(measure)
            if heading.count():
                break
            page.wait_for_timeout(250)
        assert heading.is_visible()
        rows = page.get_by_role("table").locator("tbody tr")
        shares = [float(row.split(" %")[0].split()[-1]) for row in rows.all_inner_texts()]
        assert shares == sorted(shares, reverse=True)
        assert (shares[0], shares[-1]) == (100, 0)
        assert page.get_by_role("img", name="Threshold against the share").is_visible()

        value, reason = (page.locator(f"#{id_}") for id_ in ("value", "reason"))
        page.get_by_label("use").select_option("task")
        for number, why, message in (
            *(("2", "a reason", "out of range"), ("nan", "a reason", "out of range")),
            *(
                ("high", "a reason", "not a number"),
                ("0.34", "  ", "the reason for the threshold is missing"),
            ),
        ):
            value.fill(number)
            reason.fill(why)
            follow(page.get_by_role("button", name="Set the threshold"))
            assert message in problem.inner_text()
            assert value.input_value() == number
        reason.fill("right passages begin here")
        follow(page.get_by_role("button", name="Set the threshold"))
        task = page.locator("dt", has_text="Task").locator("+ dd")
        assert task.inner_text().startswith("0.340 by dana")
        assert "right passages begin here" in task.inner_text()
        assert page.get_by_role("status").filter(has_text="next search").is_visible()
        shown = shared_installation.command("thresholds", "show", TENANT, "--json").json
        in_force = {row["use"]: (row["threshold"], row["from"]) for row in shown["thresholds"]}
        assert in_force == {"task": (0.34, "jwt:dana"), "failure": (None, "description")}

        judge_questions(shared_installation)
        follow(measure)
        page.get_by_text("is the highest threshold").wait_for()
        assert rows.first.inner_text().split()[-4:] == ["100", "%", "0", "%"]
        assert rows.last.inner_text().split()[-4:] == ["0", "%", "100", "%"]
        for width in (320, 390):
            page.set_viewport_size({"width": width, "height": 844})
            require_readable(page, width, "curve")
        watched.shot("curve-390")

        page.get_by_label("use").select_option("task")
        follow(page.get_by_role("button", name="Return to calibration"))
        assert "none" in task.inner_text()
        catalog = Driver(shared_installation).session.catalog
        events = catalog.events.latest(TENANT, kind="settings_changed")
        assert [event.payload for event in events] == [
            {"by": "jwt:dana", "changed": ["threshold"], "use": "task", "value": value}
            for value in (None, 0.34)
        ]
        # Refused forms respond with 422, which the browser's console reports.
        assert all("422" in error for error in watched.errors)


def judge_questions(installation: Installation) -> None:
    """Store three questions: for every entry, for no entry, and for an entry that is gone."""
    session = Driver(installation).session
    entries = session.catalog.documents.all(TENANT)
    right = tuple(Judgement(entry.document_id) for entry in entries)
    questions = [
        JudgedQuestion("build", "", "The build fails on every agent", right),
        JudgedQuestion("cake", UNANSWERED, "A cake for the summer party"),
        JudgedQuestion("gone", "", "The build is slow", (Judgement("an entry of the past"),)),
    ]
    ref = session.catalog.tenants.get(TENANT).ref
    store_questions(session.catalog, ref, questions)


def require_readable(page: Page, width: int, name: str) -> None:
    """Fail if text is cut off, or can be read only by scrolling sideways."""
    assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    hidden = page.evaluate(
        """[...document.querySelectorAll('main *')].filter(
            one => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0
                && getComputedStyle(one).overflowX !== 'visible'
                && !['INPUT', 'SELECT', 'TEXTAREA'].includes(one.tagName)
                && !one.closest('.unseen')).map(one => one.outerHTML.slice(0, 80))"""
    )
    assert hidden == [], name


@pytest.mark.parametrize("width", [320, 390])
def test_pages_are_readable_on_a_narrow_screen(origin: str, browser: Browser, width: int) -> None:
    with browser.new_context(viewport={"width": width, "height": 844}) as context:
        watched = Watched(context.new_page())
        page = watched.page
        enter(page, origin, OTHERS)
        first = page.get_by_role("list", name="Patterns").get_by_role("link").first
        paths = {
            "patterns": "",
            "pattern": (first.get_attribute("href") or "").rpartition("/panel/experience")[2],
            "try": "/try",
            "threshold": "/threshold",
            "checkpoints": "/checkpoints",
        }
        paths["merging"] = f"?merging={paths['pattern'].rpartition('/')[2]}"
        for name, path in paths.items():
            page.goto(url_at_host(page, f"/panel/experience{path}"))
            require_readable(page, width, name)
            watched.shot(f"{name}-{width}")
        assert watched.errors == []
