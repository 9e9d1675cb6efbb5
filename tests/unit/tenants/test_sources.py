"""A tenant's sources are validated, opened and shown by their kinds, including foreign kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.kinds import by_name
from rag_assets.ingest.sources.files import FilesConfig, FilesSource
from rag_assets.ingest.sources.kinds import SourceConfig, SourceContext, SourceKind
from rag_assets.ingest.sources.registry import SOURCE_KINDS, get_paths_by_field
from rag_assets.pipeline.source_listing import compute_settings_key
from rag_assets.tenants.file import TenantsFile
from rag_assets.tenants.kinds import TenantKinds
from rag_assets.tenants.model import Tenant


class NotesConfig(SourceConfig):
    """Text files of a notebook."""

    type: Literal["notes"] = "notes"
    notebook: Path
    tags: tuple[str, ...] = ()


def build_notes(config: NotesConfig, context: SourceContext) -> FilesSource:
    root = context.base / config.notebook
    return FilesSource(FilesConfig(name=config.name, root=root, include=("*.txt",)))


NOTES = SourceKind("notes", NotesConfig, build_notes, path_fields=("notebook",), folder="notebook")
KINDS = TenantKinds(sources=by_name(SOURCE_KINDS.values(), [NOTES]))
SOURCE = {"name": "mine", "type": "notes", "notebook": "notes"}


def tenant_of(source: dict[str, Any]) -> Tenant:
    return Tenant.from_config({"id": "a", "sources": [source]}, KINDS)


def test_a_kind_of_a_system_is_validated_and_opened(tmp_path: Path) -> None:
    tenant = tenant_of(SOURCE)
    [source] = tenant.sources
    kind = tenant.source_kind(source)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.txt").write_text("a")
    (tmp_path / "notes/b.md").write_text("b")
    built = kind.build(source, SourceContext(tmp_path))
    assert [document.path for document in built.list()] == ["a.txt"]
    assert kind.get_folder(source) == Path("notes")
    defaults = {"scope": None, "tags": [], "deletion_window_hours": 24}
    assert tenant.model_dump(mode="json")["sources"] == [{**SOURCE, **defaults}]


def test_a_kind_of_a_system_is_unknown_without_it() -> None:
    # Whatever other systems are installed.
    known = r"files, records, uploads(, (?!notes)\w+)*"
    with pytest.raises(ConfigurationError, match=rf"0\.type: choose one of: {known}$"):
        Tenant.from_config({"id": "a", "sources": [SOURCE]})


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"notebook": 5}, r"sources\.0\.notebook: "),
        ({"root": "/"}, r"sources\.0\.root: there is no such field"),
        ({"tags": "x"}, r"sources\.0\.tags: it must be a list"),
        ({"type": "wiki"}, r"sources\.0\.type: choose one of: files, records, uploads, notes"),
    ],
)
def test_a_problem_of_a_source_names_its_place(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        tenant_of({**SOURCE, **change})


def test_paths_are_relative_to_the_file_and_change_no_key(tmp_path: Path) -> None:
    path = tmp_path / "tenants.yaml"
    path.write_text("tenants:\n- id: a\n  sources: [{name: mine, type: notes, notebook: notes}]\n")
    [config] = TenantsFile(path, KINDS).load().values()
    assert config["sources"][0]["notebook"] == str(tmp_path / "notes")

    here, there = tenant_of(SOURCE), tenant_of({**SOURCE, "notebook": "elsewhere"})
    tagged = tenant_of({**SOURCE, "tags": ["x"]})
    keys = {compute_settings_key(tenant, tenant.sources[0]) for tenant in (here, there)}
    assert len(keys) == 1
    assert compute_settings_key(tagged, tagged.sources[0]) not in keys


def test_settings_keys_are_unchanged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With another key, the names of every source would be masked again."""
    monkeypatch.setattr("rag_assets.pipeline.source_listing.rules_version", lambda: "rules")
    monkeypatch.setattr("rag_assets.pipeline.source_listing.MASKING_VERSION", 1)
    config = {"id": "a", "sources": [{"name": "f", "root": "/x"}, {"name": "p", "type": "records"}]}
    tenant = Tenant.from_config(config)
    assert [compute_settings_key(tenant, source) for source in tenant.sources] == [
        "2448cfc7dde1ee8a0732a8feee73941a",
        "b52bbe2fdab04185698a0b363ecd1881",
    ]


def test_only_path_fields_of_a_known_kind_are_made_absolute() -> None:
    source = {**SOURCE, "root": "/x"}
    assert get_paths_by_field(source, KINDS.sources) == {"notebook": "notes"}
    assert get_paths_by_field({"name": "docs", "root": "/x"}, KINDS.sources) == {"root": "/x"}
    assert get_paths_by_field({"name": "docs", "type": "gone", "root": "/x"}, KINDS.sources) == {}
