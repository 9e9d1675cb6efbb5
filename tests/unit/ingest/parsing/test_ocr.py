"""Pictures of text, including hostile ones: read by OCR if it is enabled, within limits."""

from difflib import SequenceMatcher
from typing import Any

import pytest
from PIL import Image

from rag_assets.common.errors import DocumentRejected, DocumentScanned, DocumentTooLarge
from rag_assets.ingest.parsing.detection import detect
from rag_assets.ingest.parsing.media_types import PICTURES
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.parsing.registry import compute_parse_key, more_seconds, parse
from tests.unit.ingest.parsing.pictures import WORDS, bomb, drawn, saved

OCR = ParseOptions(ocr=True)
OTHERS = "Dogs travel free of charge on the upper deck"


def read(data: bytes, media_type: str, limits: ParseLimits | None = None) -> ParsedText:
    return parse(data, media_type, OCR, limits)


@pytest.mark.parametrize("media_type", PICTURES)
def test_text_is_read_from_each_kind_of_picture(media_type: str) -> None:
    data = saved(drawn(), PICTURES[media_type][0])
    parsed = read(data, media_type)
    assert WORDS in parsed.text
    assert parsed.media_type == media_type
    assert (parsed.pages, parsed.ocr_pages) == (1, 1)
    assert more_seconds(data, media_type, OCR, ParseLimits()) > 0
    with pytest.raises(DocumentScanned, match="OCR is off") as refused:
        parse(data, media_type)
    assert "parser.ocr" in (refused.value.hint or "")


@pytest.mark.parametrize(
    "image",
    [
        pytest.param(drawn(size=14), id="as small as on a screen"),
        pytest.param(drawn(ink="white", paper="#202020"), id="light on dark"),
        pytest.param(drawn(mode="L", paper=255, ink=0), id="grey"),
        pytest.param(drawn(mode="1", paper=1, ink=0), id="black and white"),
        pytest.param(drawn().convert("P"), id="palette"),
        pytest.param(drawn(mode="RGBA", paper=(0, 0, 0, 0)), id="transparent"),
        pytest.param(
            drawn(mode="L", paper=255, ink=0).convert("I;16").point(lambda v: v * 257), id="16 bits"
        ),
    ],
)
def test_pictures_of_many_kinds_are_read(image: Image.Image) -> None:
    found = read(saved(image, "PNG"), "image/png").text
    assert SequenceMatcher(None, WORDS, found).ratio() > 0.95


def test_a_photograph_is_read_as_it_is_to_be_seen() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter
    turned = saved(drawn().rotate(90, expand=True), "JPEG", exif=exif)
    assert WORDS in read(turned, "image/jpeg").text


def test_all_pages_of_a_tiff_are_read_and_the_first_picture_of_all_else() -> None:
    pages = saved(drawn(), "TIFF", save_all=True, append_images=[drawn(OTHERS)])
    parsed = read(pages, "image/tiff")
    assert (parsed.pages, parsed.ocr_pages) == (2, 2)
    assert [block.page for block in parsed.blocks] == [1, 2]
    assert OTHERS in parsed.text
    with pytest.raises(DocumentTooLarge, match="more than 1 pages"):
        read(pages, "image/tiff", ParseLimits(ocr_pages=1))
    late = read(pages, "image/tiff", ParseLimits(ocr_seconds=0))
    assert (late.pages, late.ocr_pages, OTHERS in late.text) == (2, 1, False)
    assert late.notes[0].startswith("1 of 2 pages are left out")
    more = [drawn(OTHERS).resize(drawn().size)]
    moving = saved(drawn(), "WEBP", save_all=True, append_images=more)
    assert OTHERS not in read(moving, "image/webp").text


def test_a_picture_without_text_says_so() -> None:
    with pytest.raises(DocumentScanned, match="not even by OCR"):
        read(saved(Image.new("RGB", (300, 300), "white"), "PNG"), "image/png")


@pytest.mark.parametrize(
    "size", [(9_000, 9_000), (60_000, 60_000), (2**31 - 1, 1), (2**31 - 1,) * 2]
)
def test_large_pictures_stay_packed(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    def decoded(self: Any) -> None:
        raise AssertionError

    data = bomb(*size)
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", decoded)
    with pytest.raises(DocumentTooLarge, match="pixels"):
        read(data, "image/png")


@pytest.mark.parametrize("media_type", PICTURES)
def test_damaged_pictures_are_refused_and_quoted_nowhere(media_type: str) -> None:
    whole = saved(drawn(), PICTURES[media_type][0])
    refusals = []
    for cut in range(16, len(whole), max(len(whole) // 12, 1)):
        for data in (whole[:cut], whole[:cut] + bytes(64) + whole[cut + 64 :]):
            try:
                read(data, media_type)
            except DocumentRejected as error:
                refusals.append(str(error))
    assert refusals
    assert "ferry" not in "".join(refusals)


def test_only_who_has_looked_at_the_content_may_say_that_it_is_a_picture() -> None:
    data = saved(drawn(), "PNG")
    assert detect(data, "image/jpeg") == "image/png", "by its bytes"
    with pytest.raises(DocumentRejected, match="a PNG picture") as refused:
        detect(data, "text/markdown")
    assert "parser.ocr" in (refused.value.hint or "")
    with pytest.raises(DocumentRejected):
        detect(b"GIF89a" + bytes(100), "image/png")
    assert detect(b"# Heading\n\nText.", "image/png") == "text/markdown"


def test_keys_of_pictures_follow_their_parser_alone() -> None:
    other = ParseOptions(ocr=True, ocr_languages=("deu",))
    keys = {compute_parse_key("0" * 64, type_, OCR) for type_ in (*PICTURES, "text/markdown", None)}
    assert len(keys) == len(PICTURES) + 2
    assert compute_parse_key("0" * 64, "image/png", other) not in keys
