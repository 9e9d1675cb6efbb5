from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from rag_assets.common.errors import ConfigurationError, UnknownProfile
from rag_assets.plugins.registry import InstalledSystem, Systems, installed_systems
from rag_assets.plugins.system import Migrations, System
from rag_assets.tenants import model
from rag_assets.tenants.file import TenantsFile
from rag_assets.tenants.model import Tenant
from tests.distributions import distribution


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a folder on Python's path into which systems can be installed."""
    monkeypatch.syspath_prepend(tmp_path)
    installed_systems.cache_clear()
    yield tmp_path
    installed_systems.cache_clear()


def install(packages: Path, name: str, module: str, *, distribution_name: str = "") -> None:
    text = f"from rag_assets.plugins.system import *\nSYSTEM = {module}\n"
    package = f"installed_{len(list(packages.glob('*.py')))}_{packages.name.replace('-', '_')}"
    (packages / f"{package}.py").write_text(dedent(text))
    distribution(packages, distribution_name or f"{name}-package", {name: f"{package}:SYSTEM"})


def test_a_package_elsewhere_adds_a_profile_with_its_threshold(packages: Path) -> None:
    profile = "Profile(defaults={'retrieval': {'top_k': 3}}, thresholds={'openai/small': 0.75})"
    install(packages, "notes", f"System(name='notes', profile={profile})")
    tenant = Tenant.from_config({"id": "a", "profile": "notes"})
    assert tenant.retrieval.top_k == 3
    assert tenant.min_score("openai/small@1536") == 0.75
    assert tenant.min_score("openai/large@1536") is None


SYNONYMS = """
from pydantic import BaseModel
class Synonym(BaseModel):
    word: str
"""


def install_synonyms(packages: Path, key: str = "synonyms") -> None:
    module = f"models_{packages.name.replace('-', '_')}"
    (packages / f"{module}.py").write_text(SYNONYMS)
    settings = {key: f"{module}:Synonym"}
    install(packages, "notes", f"System(name='notes', tenant_settings={settings})")


def test_a_package_elsewhere_adds_a_setting_of_tenants(packages: Path) -> None:
    install_synonyms(packages)
    tenant = Tenant.from_config({"id": "a", "synonyms": [{"word": "valve"}]})
    assert tenant.model_dump()["synonyms"] == [{"word": "valve"}]
    assert [synonym.word for synonym in tenant.synonyms] == ["valve"]  # type: ignore[attr-defined]
    assert Tenant.from_config({"id": "a"}).synonyms == ()  # type: ignore[attr-defined]
    with pytest.raises(ConfigurationError, match=r"tenant 'a': synonyms\.0\.word: .* needed"):
        Tenant.from_config({"id": "a", "synonyms": [{}]})
    with pytest.raises(ConfigurationError, match="tenant 'a': others: there is no such field"):
        Tenant.from_config({"id": "a", "others": []})


@pytest.mark.parametrize("key", ["sources", "labels"])
def test_a_setting_with_a_name_of_the_core_is_refused(packages: Path, key: str) -> None:
    install_synonyms(packages, key)
    with pytest.raises(ConfigurationError, match=f"tenant_settings: '{key}' of system 'notes'"):
        Tenant.from_config({"id": "a"})


@pytest.mark.parametrize("key", ["frameworks", "synonyms"])
def test_a_setting_of_a_system_that_is_not_installed_is_named(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [one for one in installed_systems() if not one.system.tenant_settings]
    monkeypatch.setattr(model, "installed_systems", lambda: Systems(others))
    with pytest.raises(ConfigurationError, match=f"tenant 'a': {key}: ") as e:
        Tenant.from_config({"id": "a", key: [{"name": "x"}]})
    assert "install" in (e.value.hint or "")


@pytest.mark.parametrize(("given", "least"), [(0.4, 0.4), (None, None)])
def test_a_tenants_own_threshold_counts_for_every_embedder(
    packages: Path, given: float | None, least: float | None
) -> None:
    profile = "Profile(defaults={}, thresholds={'openai/small': 0.75})"
    install(packages, "notes", f"System(name='notes', profile={profile})")
    config = {"id": "a", "profile": "notes", "retrieval": {"min_score": given}}
    assert Tenant.from_config(config).min_score("openai/small@1536") == least


def test_a_system_without_a_profile_adds_none(packages: Path) -> None:
    install(packages, "notes", "System(name='notes')")
    with pytest.raises(UnknownProfile, match="no profile 'notes'"):
        Tenant.from_config({"id": "a", "profile": "notes"})


def test_two_systems_of_one_name_are_refused_with_both_distributions(packages: Path) -> None:
    install(packages, "documents", "System(name='documents')", distribution_name="other-docs")
    with pytest.raises(ConfigurationError, match="'documents' is provided by") as raised:
        installed_systems()
    assert "other-docs 1.0" in raised.value.message
    assert "rag-assets" in raised.value.message
    assert "uninstall" in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("no_such_module:SYSTEM", "No module named 'no_such_module'"),
        ("rag_assets.plugins.system:NOTHING", "NOTHING"),
        ("rag_assets.plugins.system:PART_KINDS", "of type tuple"),
        ("rag_assets.systems.documents:SYSTEM", "has the name 'documents'"),
    ],
)
def test_a_broken_entry_point_names_its_owner(packages: Path, target: str, reason: str) -> None:
    distribution(packages, "broken-package", {"broken": target})
    with pytest.raises(ConfigurationError, match="of broken-package") as raised:
        installed_systems()
    assert reason in raised.value.message
    assert raised.value.hint


def test_the_message_of_a_failing_system_is_not_repeated(packages: Path) -> None:
    install(packages, "broken", "int('a secret value')")
    with pytest.raises(ConfigurationError, match="ValueError") as raised:
        installed_systems()
    assert "secret value" not in raised.value.message


def installed(name: str, **parts: object) -> InstalledSystem:
    return InstalledSystem(System(name=name, **parts), f"{name}-package 1.0")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["source_kinds", "chunkers", "jobs", "routers", "tools", "checks"])
def test_parts_of_one_kind_and_name_clash(kind: str) -> None:
    parts = {kind: {"same": "json:loads"}}
    with pytest.raises(ConfigurationError, match=f"{kind}: 'same'") as raised:
        Systems([installed("a", **parts), installed("b", **parts)])
    assert "a-package 1.0" in raised.value.message
    assert "b-package 1.0" in raised.value.message


def test_tables_of_one_name_clash() -> None:
    tables = {"tables": {"same": "x:same"}, "migrations": Migrations(package="x", head="0001")}
    with pytest.raises(ConfigurationError, match="tables: 'same'"):
        Systems([installed("a", **tables), installed("b", **tables)])


def test_one_name_may_be_used_for_parts_of_several_kinds() -> None:
    systems = Systems([installed("a", chunkers={"x": "json:loads"}, tools={"x": "json:dumps"})])
    assert list(systems.parts("chunkers")) == list(systems.parts("tools")) == ["x"]


def test_a_name_of_the_core_is_refused() -> None:
    systems = Systems([installed("a", chunkers={"heading": "json:loads"})])
    with pytest.raises(ConfigurationError, match="'heading' of system 'a' of a-package"):
        systems.parts("chunkers", reserved=["heading"])


def test_parts_are_imported_when_they_are_loaded() -> None:
    tools = {"there": "json:loads", "gone": "json:no_such_attribute"}
    systems = Systems([installed("a", tools=tools)])
    parts = systems.parts("tools")
    assert parts["there"].load()("[1]") == [1]
    with pytest.raises(ConfigurationError, match="tools: 'gone' cannot be loaded") as raised:
        parts["gone"].load()
    assert "a-package" in (raised.value.hint or "")


@pytest.mark.parametrize("key", ["file", "api", "tenants"])
def test_a_tenant_list_with_an_origin_of_the_core_is_refused(packages: Path, key: str) -> None:
    install(packages, "notes", f"System(name='notes', tenant_lists={{{key!r}: 'notes:LIST'}})")
    with pytest.raises(ConfigurationError, match=f"tenant_lists: '{key}' of system 'notes'"):
        TenantsFile(packages / "tenants.yaml").load()
