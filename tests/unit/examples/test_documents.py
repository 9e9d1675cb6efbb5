"""The handbook's binary documents contain what their sources say."""

import pytest

from examples.building import pdf, scan
from examples.make_documents import DOCUMENTS, HANDBOOK, SOURCES, built, differs


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_committed_document_is_what_its_source_makes(document: str) -> None:
    assert not differs(document, built(document)), "run: python -m examples.make_documents"


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_changed_word_is_noticed(document: str) -> None:
    build, (source, *others) = DOCUMENTS[document]
    text = (SOURCES / source).read_text(encoding="utf-8")
    at = text.rindex(" ")
    beside = [(SOURCES / other).read_text(encoding="utf-8") for other in others]
    assert differs(document, build(f"{text[:at]} otherwise{text[at:]}", *beside))


def test_every_source_is_used() -> None:
    used = {name for _, names in DOCUMENTS.values() for name in names}
    assert used == {path.name for path in SOURCES.iterdir()}


@pytest.mark.slow
def test_the_scanned_page_has_no_text_layer() -> None:
    import pypdfium2

    source = (SOURCES / "sligo-paper-mode.md").read_text(encoding="utf-8")
    with (
        pypdfium2.PdfDocument(scan.build(source)) as scanned,
        pypdfium2.PdfDocument(pdf.build(source)) as printed,
    ):
        assert "kettle" in printed[0].get_textpage().get_text_range()
        assert scanned[0].get_textpage().get_text_range() == ""


def test_the_copy_of_the_glossary_is_exact() -> None:
    copy = HANDBOOK / "getting-started/welcome-pack/glossary.md"
    assert copy.read_bytes() == (HANDBOOK / "reference/glossary.md").read_bytes()
