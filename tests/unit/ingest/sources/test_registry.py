from pathlib import Path

import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.kinds import by_name
from rag_assets.ingest.sources.files import FILES, FilesConfig
from rag_assets.ingest.sources.kinds import SourceConfig, SourceContext, SourceKind
from rag_assets.ingest.sources.records import RECORDS, RecordsConfig
from rag_assets.ingest.sources.registry import SOURCE_KINDS, get_source_kind


def test_a_kind_has_the_name_of_its_configuration() -> None:
    for name, kind in SOURCE_KINDS.items():
        assert kind.name == name == kind.config.model_fields["type"].default
        assert issubclass(kind.config, SourceConfig)
        assert set(kind.path_fields) <= kind.config.model_fields.keys()
        assert kind.folder is None or kind.folder in kind.path_fields


def test_a_kind_declares_whether_it_is_pushed_and_its_paths(tmp_path: Path) -> None:
    assert (FILES.pushed, RECORDS.pushed) == (False, True)
    assert FILES.get_folder(FilesConfig(name="docs", root=tmp_path)) == tmp_path
    assert RECORDS.get_folder(RecordsConfig(name="pushed")) is None


@pytest.mark.parametrize("unknown", ["ftp", None, ["files"]])
def test_an_unknown_kind_is_refused_with_those_there_are(unknown: object) -> None:
    with pytest.raises(ConfigurationError, match="type of source") as refused:
        get_source_kind({"type": unknown, "name": "d"}, SOURCE_KINDS)
    assert refused.value.hint == "choose one of: files, records, uploads"


def test_a_configuration_without_a_type_is_a_folder_of_files() -> None:
    assert get_source_kind({"name": "docs"}, SOURCE_KINDS) is FILES


def test_a_source_is_built_from_its_context(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("a")
    config = FilesConfig(name="d", root=Path("docs"))
    built = FILES.build(config, SourceContext(tmp_path))
    assert [document.uri for document in built.list()] == ["d/a.md"]
    with pytest.raises(ConfigurationError, match="its own data"):
        FILES.build(config, SourceContext(tmp_path, forbidden_roots=(tmp_path,)))
    with pytest.raises(ConfigurationError, match="allowed roots"):
        FILES.build(config, SourceContext(tmp_path, allowed_roots=(tmp_path / "other",)))


def test_records_without_a_catalog_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="records need a catalog"):
        RECORDS.build(RecordsConfig(name="pushed"), SourceContext(tmp_path))


def test_two_kinds_of_one_name_are_refused() -> None:
    other = SourceKind("files", RecordsConfig, RECORDS.build)
    with pytest.raises(ConfigurationError, match="two kinds are named 'files'"):
        by_name(SOURCE_KINDS.values(), [other])
