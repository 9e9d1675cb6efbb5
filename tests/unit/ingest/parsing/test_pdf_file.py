"""PDFs that are encrypted, partly damaged or scanned."""

from __future__ import annotations

import pytest

from rag_assets.common.errors import ConfigurationError, DocumentRejected
from rag_assets.ingest.parsing import ocr, pdf
from rag_assets.ingest.parsing.media_types import PDF
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.parsing.pdf import PdfFile
from rag_assets.ingest.parsing.registry import more_seconds
from rag_assets.ingest.parsing.registry import parse as parse_document
from tests.unit.ingest.conftest import Parse
from tests.unit.ingest.parsing import pdfs
from tests.unit.ingest.parsing.pdfs import Style

PAGE: list[tuple[Style, str]] = [
    ("heading", "Winter timetable"),
    ("body", "The ferry leaves the northern pier at seven, and does not wait for bicycles."),
    ("body", "Dogs travel free of charge on the upper deck, except in storms and on Sundays."),
]
TYPED = pdfs.laid_out([PAGE])
SCANNED = pdfs.scanned(TYPED)
MIXED = pdfs.joined(TYPED, SCANNED, TYPED)
LOCKED = pdfs.laid_out([PAGE], password="opensesame")
READ = "ferry leaves the northern pier at seven"


def refusal(data: bytes, options: ParseOptions | None = None) -> DocumentRejected:
    with pytest.raises(DocumentRejected) as caught:
        parse_document(data, PDF, options)
    return caught.value


def test_one_of_the_passwords_opens_an_encrypted_document() -> None:
    parsed = parse_document(LOCKED, PDF, ParseOptions(passwords=("wrong", "opensesame")))
    assert READ in parsed.text
    assert "opensesame" not in repr(ParseOptions(passwords=("opensesame",)))


def test_without_a_valid_password_it_is_refused_and_none_is_quoted() -> None:
    assert refusal(LOCKED).message == "the document is encrypted and needs a password"
    tried = refusal(LOCKED, ParseOptions(passwords=("sesame!", "other")))
    assert tried.message == "the document is encrypted, and none of parser.passwords opens it"
    assert "sesame" not in f"{tried.message} {tried.hint}"


@pytest.mark.slow
def test_a_password_travels_to_the_worker(parse: Parse) -> None:
    result = parse(LOCKED, PDF, passwords=("opensesame",))
    assert isinstance(result, ParsedText)
    assert READ in result.text


def test_damaged_pages_are_left_out_and_counted() -> None:
    good = pdfs.by_hand(b"BT /F1 12 Tf 100 700 Td (Hello) Tj ET", pages=3)
    for damage in (b"5 0 obj\n<</Type/Xage/", b"5 0 obj\n<(/Type/Page/"):
        parsed = parse_document(good.replace(b"5 0 obj\n<</Type/Page/", damage), PDF)
        assert [(b.page, parsed.text[b.start : b.end]) for b in parsed.blocks] == [
            (1, "Hello"), (3, "Hello"),
        ]  # fmt: skip
        assert parsed.pages == 3
        assert parsed.notes == ("1 of 3 pages are damaged and left out",)
    assert refusal(good.replace(b"/Type/Page/", b"/Type/Xage/")).message == (
        "the PDF is damaged: none of its pages can be read"
    )


def test_pages_without_text_are_noted_while_ocr_is_off() -> None:
    parsed = parse_document(MIXED, PDF)
    assert {block.page for block in parsed.blocks} == {1, 3}
    assert parsed.notes == ("1 of 3 pages are pictures without text, OCR is off",)
    assert parsed.ocr_pages == 0
    assert parse_document(TYPED, PDF).notes == ()
    assert refusal(SCANNED).hint == "set parser.ocr: true for the tenant"


@pytest.mark.slow
def test_ocr_reads_only_the_pages_without_text(parse: Parse) -> None:
    parsed = parse(MIXED, PDF, ocr=True)
    assert isinstance(parsed, ParsedText)
    assert (parsed.ocr_pages, parsed.pages, parsed.notes) == (1, 3, ())
    second = [parsed.text[b.start : b.end] for b in parsed.blocks if b.page == 2]
    assert second[0] == "Winter timetable"
    assert READ in " ".join(second)
    assert [b.page for b in parsed.blocks] == sorted(b.page or 0 for b in parsed.blocks)


@pytest.mark.slow
def test_pages_on_which_ocr_finds_nothing_are_no_text() -> None:
    reason = "no text was found, not even by OCR (2 pages)"
    assert refusal(pdfs.image_only(2), ParseOptions(ocr=True)).message == reason


@pytest.mark.slow
def test_scanned_pages_add_to_the_time_and_are_limited() -> None:
    on, limits = ParseOptions(ocr=True), ParseLimits(ocr_pages=1)
    assert more_seconds(MIXED, PDF, on, ParseLimits()) == 70
    assert more_seconds(MIXED, PDF, ParseOptions(), ParseLimits()) == 0
    assert more_seconds(TYPED, PDF, on, ParseLimits()) == 0
    with pytest.raises(DocumentRejected, match="more than 1 scanned pages"):
        parse_document(pdfs.joined(SCANNED, SCANNED), PDF, on, limits)


@pytest.mark.slow
def test_pages_for_which_there_is_no_time_are_told_and_the_rest_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on = ParseOptions(ocr=True)
    four = pdfs.joined(SCANNED, SCANNED, SCANNED, TYPED)
    parsed = parse_document(four, PDF, on, ParseLimits(ocr_seconds=0))
    assert (parsed.ocr_pages, READ in parsed.text) == (1, True)
    assert parsed.blocks[-1].page == 4, "what needs no OCR is read"
    most = "are left out: OCR has 0 seconds of a document, 30 of a page"
    assert parsed.notes == (f"2 of 4 pages {most}",)
    monkeypatch.setattr(ocr, "PAGE_SECONDS", 0.001)
    parsed = parse_document(pdfs.joined(SCANNED, TYPED), PDF, on)
    assert parsed.ocr_pages == 0
    assert [note[:6] for note in parsed.notes] == ["1 of 2"]
    assert refusal(SCANNED, on).message == "OCR of a page took longer than 0.001 s"


def test_five_hundred_pages_have_ten_minutes_and_slow_ones_are_made_up_for() -> None:
    assert ocr.compute_ocr_seconds(0, ParseLimits()) == 0
    assert ocr.compute_ocr_seconds(500, ParseLimits()) == 630

    def read(pages: int, seconds: float) -> tuple[int, float]:
        now = [0.0]

        def page() -> list[str]:
            now[0] += seconds
            return ["text"]

        time = ocr.OcrTime(ParseLimits(), clock=lambda: now[0])
        for _ in range(pages):
            time.read_paragraphs(page)
        assert time.read + time.left_out == pages
        return time.read, now[0]

    assert read(500, 1.0) == (500, 500.0)
    assert read(500, 2.0) == (301, 602.0)
    assert read(2, 29.0) == (2, 58.0)
    for pages in (1, 5, 20, 500):
        assert read(pages, 30.0)[1] <= ocr.compute_ocr_seconds(pages, ParseLimits())


def test_pages_of_any_size_are_drawn_with_a_bounded_number_of_pixels() -> None:
    for width, height in ((612, 792), (14_400, 14_400), (1, 200_000), (1e6, 1e6)):
        scale = pdf._compute_scale(width, height)
        assert width * height * scale**2 <= 16_000_001
        assert scale <= 200 / 72


def test_a_language_without_data_is_one_clear_error(tmp_path) -> None:  # type: ignore[no-untyped-def]
    ocr.require_languages(["eng"], None)
    with pytest.raises(ConfigurationError, match=r"deu\.traineddata is not in"):
        ocr.require_languages(["eng", "deu"], None)
    (tmp_path / "deu.traineddata").touch()
    ocr.require_languages(["deu"], str(tmp_path))


def test_what_a_picture_is() -> None:
    for data, picture in (
        (TYPED, False), (SCANNED, True), (pdfs.by_hand(b" "), False),
        (pdfs.by_hand(b"10 10 200 200 re f"), True),
    ):  # fmt: skip
        with PdfFile(data) as file:
            assert file.is_picture_page(1) is picture
