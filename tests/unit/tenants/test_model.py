import re
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.common.errors import ConfigurationError, UnknownProfile
from rag_assets.common.kinds import by_name
from rag_assets.ingest.sources.files import FilesConfig, FilesSource
from rag_assets.ingest.sources.kinds import SourceConfig, SourceContext, SourceKind
from rag_assets.ingest.sources.registry import SOURCE_KINDS, get_paths_by_field
from rag_assets.pipeline.source_listing import compute_settings_key
from rag_assets.plugins.registry import installed_systems
from rag_assets.tenants.file import TenantsFile
from rag_assets.tenants.kinds import TenantKinds
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import apply_profile

ID = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*")


@pytest.mark.slow
@given(tenant_id=st.text("abz09._-A /", max_size=8) | st.text(max_size=4))
def test_an_id_is_lower_case_words_joined_by_single_signs(tenant_id: str) -> None:
    if ID.fullmatch(tenant_id):
        assert Tenant.from_config({"id": tenant_id}).id == tenant_id
    else:
        with pytest.raises(ConfigurationError, match="id"):
            Tenant.from_config({"id": tenant_id})


@pytest.mark.parametrize("tenant_id", ["a\n", "a..b", "a...b", "x" * 64])
def test_unsafe_ids_are_rejected(tenant_id: str) -> None:
    with pytest.raises(ConfigurationError, match="id"):
        Tenant.from_config({"id": tenant_id})
    assert Tenant.from_config({"id": "x" * 63}).id == "x" * 63


def test_a_profile_fills_in_unset_fields() -> None:
    tenant = Tenant.from_config({"id": "a", "profile": "documents", "chunker": {"overlap": 20}})
    assert (tenant.chunker.max_tokens, tenant.chunker.overlap) == (220, 20)
    assert Tenant.from_config({"id": "a", "profile": "documents"}).chunker.overlap == 32
    assert tenant.retrieval.top_k == 5


def test_a_profile_is_not_changed_by_its_use() -> None:
    before = repr(installed_systems().profiles)
    apply_profile({"id": "a", "chunker": {"max_tokens": 50}, "retrieval": {"top_k": 1}})
    assert repr(installed_systems().profiles) == before


def test_an_unknown_profile_lists_the_known_ones() -> None:
    with pytest.raises(UnknownProfile) as raised:
        Tenant.from_config({"id": "a", "profile": "nope"})
    assert all(name in (raised.value.hint or "") for name in installed_systems().profiles)


SOURCE = {"name": "files", "type": "files", "root": "/tmp"}
CHOOSE = "choose one of: files, records, uploads"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"colour": "red"}, "colour"),
        ({"retention_days": 0}, "retention_days"),
        ({"freshness_minutes": 0}, "freshness_minutes"),
        ({"chunker": {"max_tokens": 1}}, "max_tokens"),
        ({"chunker": {"chunker": "nope"}}, "choose one of: heading, recursive, sentence, record"),
        ({"chunker": {"max_characters": 100}}, "max_characters"),
        ({"chunkers": [{"formats": ["csv"]}]}, "chunkers.0.chunker"),
        ({"chunkers": [{"chunker": "record"}]}, "neither formats, sources nor source_types"),
        ({"chunkers": [{"chunker": "record", "formats": ["nope"]}]}, "is not a known format"),
        ({"chunkers": [{"chunker": "record", "sources": ["x"]}]}, "no source is named 'x'"),
        ({"retrieval": {"top_k": 101}}, "top_k"),
        ({"retrieval": {"min_score": 2}}, "min_score"),
        ({"retrieval": {"mode": "magic"}}, "mode"),
        ({"parser": {"seconds": float("inf")}}, "seconds"),
        ({"parser": {"seconds": float("nan")}}, "seconds"),
        ({"index": {"vector_index": "flat"}}, "vector_index"),
        ({"access": {"scope": ""}}, "scope"),
        ({"sources": [SOURCE, SOURCE]}, "two sources with the same name"),
        ({"sources": [{**SOURCE, "name": "A B"}]}, "name"),
        ({"chunk_size": 5}, "chunk_size: there is no such field"),
        ({"sources": [{"type": "files"}]}, "sources.0.name: this field is needed"),
        ({"sources": [{**SOURCE, "include": "*.md"}]}, "sources.0.include: it must be a list"),
        ({"sources": [{**SOURCE, "include": ["["]}]},
         "sources.0.include: the glob '[' is empty or malformed"),
        ({"sources": [{**SOURCE, "include": []}]}, "sources.0.include: it must not be empty"),
        ({"sources": [{**SOURCE, "type": "ftp"}]}, f"sources.0.type: {CHOOSE}"),
        ({"sources": [{**SOURCE, "type": 5}]}, f"sources.0.type: {CHOOSE}"),
        ({"sources": ["docs"]}, "sources.0: it must be a mapping"),
        ({"chunker": "recursive"}, "chunker: it must be a mapping"),
        ({"parser": {"ocr": "maybe"}}, "parser.ocr: it must be true or false"),
        ({"parser": {"seconds": 0}}, "parser.seconds: it must be greater than 0"),
        ({"parser": {"memory_mb": 1}}, "parser.memory_mb: it must be 256 or more"),
        ({"retrieval": {"top_k": "many"}}, "retrieval.top_k: it must be a whole number"),
        ({"id": "A b"}, "id: it may contain only a-z in lower case, digits, and single . _ -"),
        ({"id": "a" * 64}, "id: it is too long: 63 characters at most"),
    ],
)  # fmt: skip
def test_a_problem_names_its_place(config: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Tenant.from_config({"id": "acme", **config})
    assert f"{config.get('id', 'acme')}" in refused.value.message
    assert said in refused.value.message
    assert refused.value.hint
    assert "\n" not in refused.value.message


def test_passwords_are_references_and_never_values(monkeypatch: pytest.MonkeyPatch) -> None:
    for literal in ("opensesame", "$", "$a b", "${NAME}", "x$NAME"):
        with pytest.raises(ConfigurationError) as caught:
            Tenant.from_config({"id": "a", "parser": {"passwords": ["$NAME", literal]}})
        assert "parser.passwords" in caught.value.message
        assert literal not in caught.value.message.replace("parser.passwords", "")
    tenant = Tenant.from_config({"id": "a", "parser": {"passwords": ["$FIRST", "$SECOND"]}})
    monkeypatch.setenv("FIRST", "one")
    with pytest.raises(ConfigurationError, match="the environment variable SECOND, which is not"):
        _ = tenant.parser.options
    monkeypatch.setenv("SECOND", "two")
    assert tenant.parser.options.passwords == ("one", "two")
    assert "one" not in f"{tenant!r} {tenant.model_dump()}".replace("None", "")


def test_languages_of_ocr_are_required_where_ocr_is_on(tmp_path: Path) -> None:
    parser = {"ocr": True, "ocr_languages": ["eng", "deu"], "ocr_data": str(tmp_path)}
    with pytest.raises(ConfigurationError, match=r"eng\.traineddata is not in"):
        _ = Tenant.from_config({"id": "a", "parser": parser}).parser.options
    off = Tenant.from_config({"id": "a", "parser": {**parser, "ocr": False}})
    assert off.parser.options.ocr_languages == ("eng", "deu")
    with pytest.raises(ConfigurationError, match=r"ocr_languages"):
        Tenant.from_config({"id": "a", "parser": {"ocr_languages": ["../eng"]}})


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
NOTES_SOURCE = {"name": "mine", "type": "notes", "notebook": "notes"}


def tenant_of(source: dict[str, Any]) -> Tenant:
    return Tenant.from_config({"id": "a", "sources": [source]}, KINDS)


def test_a_kind_of_a_system_is_validated_and_opened(tmp_path: Path) -> None:
    tenant = tenant_of(NOTES_SOURCE)
    [source] = tenant.sources
    kind = tenant.source_kind(source)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.txt").write_text("a")
    (tmp_path / "notes/b.md").write_text("b")
    built = kind.build(source, SourceContext(tmp_path))
    assert [document.path for document in built.list()] == ["a.txt"]
    assert kind.get_folder(source) == Path("notes")
    defaults = {"scope": None, "tags": [], "deletion_window_hours": 24}
    assert tenant.model_dump(mode="json")["sources"] == [{**NOTES_SOURCE, **defaults}]


def test_a_kind_of_a_system_is_unknown_without_it() -> None:
    # Whatever other systems are installed.
    known = r"files, records, uploads(, (?!notes)\w+)*"
    with pytest.raises(ConfigurationError, match=rf"0\.type: choose one of: {known}$"):
        Tenant.from_config({"id": "a", "sources": [NOTES_SOURCE]})


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
        tenant_of({**NOTES_SOURCE, **change})


def test_paths_are_relative_to_the_file_and_change_no_key(tmp_path: Path) -> None:
    path = tmp_path / "tenants.yaml"
    path.write_text("tenants:\n- id: a\n  sources: [{name: mine, type: notes, notebook: notes}]\n")
    [config] = TenantsFile(path, KINDS).load().values()
    assert config["sources"][0]["notebook"] == str(tmp_path / "notes")

    here, there = tenant_of(NOTES_SOURCE), tenant_of({**NOTES_SOURCE, "notebook": "elsewhere"})
    tagged = tenant_of({**NOTES_SOURCE, "tags": ["x"]})
    keys = {compute_settings_key(tenant, tenant.sources[0]) for tenant in (here, there)}
    assert len(keys) == 1
    assert compute_settings_key(tagged, tagged.sources[0]) not in keys


def test_settings_keys_are_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """With another key, the names of every source would be masked again."""
    monkeypatch.setattr("rag_assets.pipeline.source_listing.rules_version", lambda: "rules")
    monkeypatch.setattr("rag_assets.pipeline.source_listing.MASKING_VERSION", 1)
    config = {"id": "a", "sources": [{"name": "f", "root": "/x"}, {"name": "p", "type": "records"}]}
    tenant = Tenant.from_config(config)
    keys = [compute_settings_key(tenant, source) for source in tenant.sources]
    assert keys == ["2448cfc7dde1ee8a0732a8feee73941a", "b52bbe2fdab04185698a0b363ecd1881"]


def test_only_path_fields_of_a_known_kind_are_made_absolute() -> None:
    source = {**NOTES_SOURCE, "root": "/x"}
    assert get_paths_by_field(source, KINDS.sources) == {"notebook": "notes"}
    assert get_paths_by_field({"name": "docs", "root": "/x"}, KINDS.sources) == {"root": "/x"}
    assert get_paths_by_field({"name": "docs", "type": "gone", "root": "/x"}, KINDS.sources) == {}
