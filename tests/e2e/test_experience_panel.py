"""The panel of experience: an admin sees patterns, takes one apart, and what checkpoints made."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import jwt
import pytest
from playwright.sync_api import Browser, Page

from rag_assets.privacy.masker import masker_of
from rag_assets.systems.experience.model import CheckpointDraft, EntryDraft, ProjectDraft
from rag_assets.systems.experience.service import Experience
from tests.browser import chromium
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.panel_site import ENVIRONMENT, SECRET
from tests.security.service_process import started
from tests.watched_page import Watched, follow, sign_in

TENANT = "lessons"
PROJECTS = {UUID(int=1): "Harbor", UUID(int=2): "Meadow"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def origin(
    shared_installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A service over a tenant whose two projects solved one problem alike."""
    source = {"name": "experience", "type": "experience"}
    shared_installation.add_tenant(TENANT, profile="experience", **FAST, sources=[source])
    driver = Driver(shared_installation)
    driver.sync(TENANT)
    session = driver.session
    experience = Experience(session.catalog, masker_of(session.settings.local))
    for project, name in PROJECTS.items():
        experience.put_project(TENANT, project, ProjectDraft(name=name))
        capture(experience, project, "The build fails\n" + "on every agent " * 20)
        experience.request_checkpoint(
            TENANT, CheckpointDraft(checkpoint_type="phase_completion", project_id=project), by="t"
        )
        driver.sync(TENANT)
    capture(experience, project, "Still staged")
    log = tmp_path_factory.mktemp("panel") / "log"
    with started(shared_installation, log, **ENVIRONMENT) as (_, port):
        yield f"http://127.0.0.1:{port}"


def capture(experience: Experience, project: UUID, problem: str) -> None:
    draft: dict[str, Any] = {
        "entry_type": "failure_solution",
        "project_id": project,
        "agent_type": "tester",
        "failure_description": problem,
        "solution_steps": "1. Pin the version.\n2. <script>alert(1)</script>",
        "success_verified": True,
    }
    experience.capture(TENANT, EntryDraft(**draft), by="jwt:conductor")


def enter(page: Page, origin: str) -> None:
    """Sign in with a token of an admin."""
    claims = {"sub": "dana", "exp": int(time.time()) + 600, "role": "admin", "tenants": [TENANT]}
    sign_in(page, origin, jwt.encode(claims, SECRET))
    page.wait_for_url("**/panel/experience")


def test_an_admin_sees_a_pattern_and_takes_it_apart(origin: str, browser: Browser) -> None:
    with browser.new_context(viewport={"width": 1280, "height": 860}) as context:
        watched = Watched(context.new_page())
        page = watched.page
        enter(page, origin)
        rows = page.locator("tbody tr")
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

        other = page.locator("tbody a").first
        if split in (other.get_attribute("href") or ""):
            other = page.locator("tbody a").nth(1)
        follow(other)
        page.get_by_label("Id of the other pattern").fill(split)
        follow(page.get_by_role("button", name="Merge"))
        page.get_by_role("heading", name="Less Common: 2 successes, 0 failures").wait_for()

        follow(page.get_by_role("link", name="Checkpoints"))
        page.get_by_role("heading", name="Checkpoints").wait_for()
        assert page.get_by_text("1 entry waits for a checkpoint.").is_visible()
        assert [cell.inner_text() for cell in page.locator("tbody tr td:nth-child(4)").all()] == [
            "done",
            "done",
        ]
        watched.shot("checkpoints")

        page.go_back()
        follow(page.get_by_role("button", name="Take back the entry of Harbor, number 1"))
        page.wait_for_url("**/panel/experience")
        assert rows.count() == 1
        assert watched.errors == []


def test_pages_are_usable_on_a_narrow_screen(origin: str, browser: Browser) -> None:
    with browser.new_context(viewport={"width": 320, "height": 720}) as context:
        watched = Watched(context.new_page())
        page = watched.page
        enter(page, origin)
        for _ in range(2):
            wider = page.evaluate("document.documentElement.scrollWidth")
            assert wider <= 320
            follow(page.get_by_role("link", name="Checkpoints"))
        watched.shot("checkpoints-narrow")
