"""SCIP index files: how a repository's source finds and converts them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from rag_assets.common.errors import ConfigurationError, DocumentRejected, DocumentTooLarge
from rag_assets.ingest.sources.disk import Roots
from rag_assets.systems.code_memory.sources import scip_file
from rag_assets.systems.code_memory.sources.scip_file import render_index
from tests.repositories import MadeRepository, listed, source_of
from tests.scip_index import Document, index_of

INDEX = Path(__file__).parents[1] / "derived/indexed/shop/index.scip"
DATA = INDEX.read_bytes()


def test_text_of_index_leaves_out_parameters_modules_and_locals() -> None:
    lines = render_index(DATA, "index.scip").splitlines()
    assert lines[:2] == ["scip index.scip", "root //tmp/shop"] or lines[0] == "scip index.scip"
    assert "symbol total Invoice" in lines
    assert "symbol check_out" in lines
    at = lines.index("file shop/checkout.py 0 -")
    here = lines[at + 1 : lines.index("file shop/checks.py 0 -")]
    cart_total = lines.index("symbol total Cart") - 2
    assert f"11 26 31 {cart_total}" in here
    assert not any(line.startswith("11 21 25") for line in here), "the parameter `cart`"
    assert not any(line.startswith("12 4 9") for line in here), "the local variable `store`"


def test_text_of_index_keeps_no_text_no_description_and_no_folder_of_a_machine() -> None:
    document = Document("a.py", [(0, 4, 5, "f().", 1)], text="password = 'hunter2'")
    text = render_index(index_of([document], "file:///home/ada/work/shop/back"), "index.scip")
    assert "hunter2" not in text
    assert "root work/shop/back\n" in text
    assert "ada" not in text


@pytest.mark.parametrize(
    ("descriptors", "line"),
    [
        ("`a b`/C#`say hello`().", "symbol say%20hello C"),
        ("p/C#m(+1).", "symbol m C"),
        ("p/`<constructor>`.", "symbol %3Cconstructor%3E"),
        ("mod/impl#[Shop][Sale]total().", "symbol total Sale"),
        ("p/Grosse#", "symbol Grosse"),
        ("p/assert!", "symbol assert"),
    ],
)
def test_text_of_index_reads_each_kind_of_descriptor(descriptors: str, line: str) -> None:
    data = index_of([Document("a.py", [(0, 4, 5, descriptors, 1)])])
    assert line in render_index(data, "index.scip").splitlines()


@pytest.mark.parametrize("descriptors", ["p/", "p/__init__:", "p/f().(x)", "p/f().[T]"])
def test_text_of_index_ignores_descriptors_that_define_no_name(descriptors: str) -> None:
    data = index_of([Document("a.py", [(0, 4, 5, descriptors, 1)])])
    assert "symbol" not in render_index(data, "index.scip")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(DATA[:-1], id="truncated"),
        pytest.param(DATA[: len(DATA) // 2], id="half"),
        pytest.param(DATA[20:], id="without its start"),
        pytest.param(b"", id="empty"),
        pytest.param(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", id="endless number"),
        pytest.param(b"# a text\n", id="text"),
        pytest.param(b"\x89PNG\r\n\x1a\n" + bytes(100), id="picture"),
        pytest.param(b"PK\x03\x04" + bytes(100), id="archive"),
        pytest.param(bytes(4096), id="zeros"),
        pytest.param(index_of([])[:1] + b"\x03\x08\x00\xff", id="damaged metadata"),
    ],
)
def test_text_of_index_refuses_what_is_no_index(data: bytes) -> None:
    with pytest.raises(DocumentRejected, match=r"'x/index.scip' is damaged, or is not a SCIP"):
        render_index(data, "x/index.scip")


def test_text_of_index_survives_damage_of_each_byte() -> None:
    """If any byte is wrong, the index is refused or partly read; no other error is raised."""
    refused = 0
    for at in range(0, len(DATA), 7):
        damaged = DATA[:at] + bytes([DATA[at] ^ 0xFF]) + DATA[at + 1 :]
        try:
            render_index(damaged, "index.scip")
        except DocumentRejected:
            refused += 1
    assert refused > 100


def test_text_of_index_refuses_a_huge_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scip_file, "MAX_BYTES", 1 << 20)
    with pytest.raises(DocumentTooLarge, match="larger than 1 MiB"):
        render_index(bytes((1 << 20) + 1), "index.scip")


@pytest.mark.parametrize(
    "documents",
    [
        pytest.param([Document("", [])] * 50, id="files"),
        pytest.param([Document("a.py", [(0, 4, 5, "p/f().", 0)] * 50)], id="occurrences"),
    ],
)
def test_text_of_index_refuses_many_entries(
    monkeypatch: pytest.MonkeyPatch, documents: list[Document]
) -> None:
    assert render_index(index_of(documents), "index.scip")
    monkeypatch.setattr(scip_file, "_MAX_ENTRIES", 40)
    with pytest.raises(DocumentTooLarge, match="more than 40 files and occurrences"):
        render_index(index_of(documents), "index.scip")


@pytest.mark.parametrize("part", ["(", "[", "`a"])
def test_text_of_index_reads_a_long_symbol_in_linear_time(part: str) -> None:
    """Quadratic time would exceed the time limit of a test."""
    data = index_of([Document("a.py", [(0, 4, 5, part * 500_000, 1)])])
    assert "symbol" not in render_index(data, "index.scip")


def test_git_source_lists_indexes_in_the_root_and_beside_manifests(tmp_path: Path) -> None:
    made = MadeRepository(tmp_path / "repo")
    made.commit({".gitignore": "*.scip\n", "web/package.json": "{}", "docs/a.md": "# A\n"})
    without = made.source().state()
    made.write({"index.scip": DATA, "web/index.scip": DATA, "docs/index.scip": DATA})
    source = made.source()
    assert source.state() != without
    found = {path: one for path, one in listed(source).items() if path.endswith(".scip")}
    assert found.keys() == {"index.scip", "web/index.scip"}
    assert {one.source_type for one in found.values()} == {"scip"}
    assert {one.media_type for one in found.values()} == {"text/x-derived"}
    text = source.read("web/index.scip", max_bytes=10)
    assert text.decode() == render_index(DATA, "web/index.scip")
    assert listed(made.source("HEAD")).keys() & {"index.scip", "web/index.scip"} == {"index.scip"}


def test_git_source_leaves_out_an_index_that_is_excluded_or_a_link(tmp_path: Path) -> None:
    made = MadeRepository(tmp_path / "repo")
    made.commit({"a.py": "x = 1\n", "web/go.mod": "module web\n"})
    (tmp_path / "secret").write_bytes(DATA)
    (made.root / "index.scip").symlink_to(tmp_path / "secret")
    made.write({"web/index.scip": DATA})
    assert listed(made.source(exclude=["web/"])).keys() == {"a.py"}
    with pytest.raises(DocumentRejected):
        made.source().read("index.scip", max_bytes=1 << 20)


def test_git_source_never_lists_an_index_as_a_text(tmp_path: Path) -> None:
    made = MadeRepository(tmp_path / "repo")
    made.commit({"a.py": "x = 1\n", "docs/index.scip": "a text\n", "index.scip": "a text\n"})
    source = made.source(include=["**/*"])
    assert listed(source).keys() == {"a.py", "index.scip"}
    with pytest.raises(DocumentRejected, match="not a SCIP index"):
        source.read("index.scip", max_bytes=1 << 20)


def test_git_source_lists_the_indexes_that_its_configuration_names(tmp_path: Path) -> None:
    made = MadeRepository(tmp_path / "repo")
    made.commit({"a.py": "x = 1\n"})
    made.write({"build/a.scip": DATA})
    outside = tmp_path / "indexes" / "b.scip"
    outside.parent.mkdir()
    outside.write_bytes(DATA)
    source = made.source(scip=["build/a.scip", str(outside), "gone.scip"])
    found = [path for path in listed(source) if path.endswith(".scip")]
    assert found[0] == "build/a.scip"
    assert found[1].startswith(".scip/")
    assert found[1].endswith("/b.scip")
    assert str(tmp_path) not in found[1]
    assert source.read(found[1], max_bytes=10).decode() == render_index(DATA, found[1])
    with pytest.raises(DocumentRejected, match=r"the SCIP index 'gone.scip' is missing"):
        source.read("gone.scip", max_bytes=10)


def test_git_source_refuses_an_index_outside_of_the_allowed_roots(tmp_path: Path) -> None:
    made = MadeRepository(tmp_path / "repo")
    made.commit({"a.py": "x = 1\n"})
    (tmp_path / "other.scip").write_bytes(DATA)
    roots = Roots((made.root,))
    with pytest.raises(ConfigurationError, match="none of the allowed roots"):
        source_of(made.root, roots=roots, scip=[str(tmp_path / "other.scip")])
    (made.root / "link.scip").symlink_to(tmp_path / "other.scip")
    with pytest.raises(ConfigurationError, match="none of the allowed roots"):
        source_of(made.root, roots=roots, scip=["link.scip"])


@pytest.mark.parametrize("path", ["../a.scip", "a/../b.scip", "", "/", "a//b", "a/", "./a"])
def test_git_source_refuses_a_path_that_is_not_plain(tmp_path: Path, path: str) -> None:
    with pytest.raises(ValidationError):
        source_of(tmp_path, scip=[path])
