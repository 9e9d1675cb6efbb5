from time import process_time

import pytest

from rag_assets.common.errors import ConfigurationError, DocumentRejected
from rag_assets.ingest.parsing import ocr, pdf
from rag_assets.ingest.parsing.blocks import clean_property_title
from rag_assets.ingest.parsing.media_types import PDF
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.parsing.pdf import PdfFile, remove_markup
from rag_assets.ingest.parsing.registry import more_seconds
from rag_assets.ingest.parsing.registry import parse as parse_document
from tests.unit.ingest.conftest import Parse
from tests.unit.ingest.parsing import pdfs
from tests.unit.ingest.parsing.pdfs import Style

BODY: list[tuple[Style, str]] = [
    ("body", "Ordinary text of the body that runs over the whole line and says little."),
    ("body", "It goes on with another line, so that the body's size is the common one."),
]
PAGES: list[list[tuple[Style, str]]] = [
    [("heading", "Field Manual"), *BODY, ("subheading", "Setting out"), *BODY],
    [("heading", "Second Part"), *BODY, ("subheading", "Not in the outline"), *BODY],
]
OUTLINE = [(1, 0, "Field Manual"), (1, 1, "Setting out"), (2, 0, "2. Second Part")]


def parsed(data: bytes) -> ParsedText:
    return parse_document(data)


def headings(result: ParsedText) -> list[tuple[str, int, int | None]]:
    return [(result.text[b.start : b.end], b.level, b.page) for b in result.blocks if b.level]


def test_blocks_are_the_text_with_blank_lines_between() -> None:
    result = parsed(pdfs.laid_out(PAGES))
    assert "\n\n".join(result.text[b.start : b.end] for b in result.blocks) == result.text
    assert result.pages == 2
    assert [b.page for b in result.blocks] == sorted(b.page or 0 for b in result.blocks)
    assert "says little. It goes on" in result.text


def test_without_an_outline_type_sizes_tell_headings() -> None:
    result = parsed(pdfs.laid_out(PAGES))
    assert [(name, page) for name, _, page in headings(result)] == [
        ("Field Manual", 1), ("Setting out", 1), ("Second Part", 2), ("Not in the outline", 2),
    ]  # fmt: skip


def test_an_outline_confirms_headings_and_gives_their_levels() -> None:
    result = parsed(pdfs.laid_out(PAGES, outline=OUTLINE))
    assert headings(result) == [
        ("Field Manual", 1, 1), ("Setting out", 2, 1), ("Second Part", 1, 2),
    ]  # fmt: skip
    by_text = {result.text[b.start : b.end]: b for b in result.blocks}
    assert by_text["Not in the outline"].kind == "paragraph"
    assert by_text["Not in the outline"].heading_path == ("Second Part",)
    assert result.blocks[1].heading_path == ("Field Manual",)


def test_an_outline_of_other_words_removes_no_heading() -> None:
    result = parsed(pdfs.laid_out(PAGES, outline=[(1, 0, "Slide 1"), (2, 0, "Slide 2")]))
    assert len(headings(result)) == 4


def test_escapes_and_emphasis_go_and_signs_stay() -> None:
    line = r"Call f(*args, **kw) in snake_case or 2*3*4, see C:\temp and __init__ # now"
    result = parsed(pdfs.laid_out([[("heading", "A *b* \\ c"), ("body", line), *BODY]]))
    assert line in result.text
    assert result.title == "A *b* \\ c"
    assert remove_markup(r"**bold** \*star\* *it*") == "bold *star* it"


def test_the_title_in_the_metadata_wins_if_it_is_one() -> None:
    assert parsed(pdfs.laid_out(PAGES, title="The Great Manual")).title == "The Great Manual"
    assert parsed(pdfs.laid_out(PAGES, title="Microsoft Word - draft3.doc")).title == "Field Manual"
    assert parsed(pdfs.laid_out(PAGES, title="")).title == "Field Manual"


@pytest.mark.parametrize("written", [b"<FEFFD80000410042>", b"<FEFFDC00DC00>"])
@pytest.mark.parametrize("title", [b"(The Great Manual)", b"(Setting out)"])
def test_half_a_character_costs_only_its_title_or_bookmark(title: bytes, written: bytes) -> None:
    whole = pdfs.laid_out(PAGES, title="The Great Manual", outline=OUTLINE)
    assert b"/Title " + title in whole
    result = parsed(whole.replace(b"/Title " + title, b"/Title " + written))
    assert result.title in {"The Great Manual", "Field Manual"}
    assert ("Second Part", 1, 2) in headings(result)


@pytest.mark.parametrize(
    ("title", "sensible"),
    [
        ("Untitled", None), ("untitled-2", None), ("report_final.pdf", None), ("  ", None),
        ("report_final", None), ("C:\\docs\\x", None), ("20240101", None), ("Document1", None),
        ("draft.docx", None), ("ab", None), ("(anonymous)", None), ("Slide 1", None),
        ("Guide to Node.js", "Guide to Node.js"), ("Résumé", "Résumé"), ("手引き書", "手引き書"),
        ("Using snake_case well", "Using snake_case well"), ("A\n b", "A b"),
        ("Input/Output Explained", "Input/Output Explained"),
    ],
)  # fmt: skip
def test_which_titles_a_person_gave(title: str, sensible: str | None) -> None:
    assert clean_property_title(title) == sensible


def test_batches_of_pages_make_one_document() -> None:
    texts = [f"This is the text of page number {n}, unlike any other." for n in range(1, 71)]
    many: list[list[tuple[Style, str]]] = [[("body", text), *BODY] for text in texts]
    result = parsed(pdfs.laid_out(many))
    assert result.pages == 70
    for n in (1, 32, 33, 64, 65, 70):
        at = result.text.index(f"page number {n},")
        assert next(b.page for b in result.blocks if b.start <= at < b.end) == n


def test_headers_that_repeat_go_unless_they_are_wanted() -> None:
    pages: list[list[tuple[Style, str]]] = []
    for n in range(6):
        sentences = [f"Sentence {n}{i} of its own." * 3 for i in range(30)]
        pages.append([("body", text) for text in ("Company confidential", *sentences)])
    data = pdfs.laid_out(pages)
    assert parsed(data).text.count("Company confidential") <= 1
    whole = parse_document(data, options=ParseOptions(keep_headers_footers=True))
    assert whole.text.count("Company confidential") == 6


def test_pages_that_are_all_alike_keep_their_text() -> None:
    result = parsed(pdfs.laid_out([[("heading", "Form"), *BODY]] * 40))
    assert result.text.count("says little.") == 40


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


UPRIGHT = "The harbour board met on Monday.\nIt discussed the new crane at length."
TURNED = "Der Kran steht am Kai.\nEr hebt täglich Kisten."


@pytest.mark.parametrize("angle", [90, 180, 270])
def test_turned_text_on_a_part_of_a_page_follows_the_upright_text(angle: int) -> None:
    result = parsed(pdfs.turned([[(angle, TURNED), (0, UPRIGHT + "\n" + UPRIGHT)]]))
    assert result.text.startswith("The harbour board met")
    assert result.text.endswith("\n\nDer Kran steht am Kai. Er hebt täglich Kisten.")
    assert result.text.count("Kran") == 1


@pytest.mark.parametrize("angle", [90, 180, 270])
def test_turned_page_among_upright_pages_is_read_in_order(angle: int) -> None:
    result = parsed(pdfs.turned([[(0, UPRIGHT)], [(angle, TURNED)], [(0, UPRIGHT)]]))
    assert [b.page for b in result.blocks] == [1, 2, 3]
    assert "Der Kran steht am Kai. Er hebt täglich Kisten." in result.text


@pytest.mark.parametrize("rotation", [90, 180, 270])
@pytest.mark.parametrize("angle", [0, 90])
def test_rotation_of_displayed_pages_changes_no_text(angle: int, rotation: int) -> None:
    text = "Line one is short.\nLine two ends."
    result = parsed(pdfs.turned([[(270 if angle else 180, text)]], rotation=rotation))
    assert result.text == "Line one is short. Line two ends."


def test_turned_margin_repeated_on_every_page_is_kept_once() -> None:
    data = pdfs.turned([[(0, f"{UPRIGHT}\nPage {n}"), (90, "Downloaded copy")] for n in range(4)])
    assert parsed(data).text.count("Downloaded copy") == 1
    whole = parse_document(data, options=ParseOptions(keep_headers_footers=True))
    assert whole.text.count("Downloaded copy") == 4


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (pdfs.form([(90, 700, "Post"), (90, 676, "Telefon"), (90, 652, "Post")],
                   boxes=[(70, 698, True), (70, 674, False), (70, 650, True)]),
         "☒ Post ☐ Telefon ☒ Post"),
        (pdfs.form([(72, 700, "Assuré?"), (200, 700, "Oui"), (300, 700, "Non"), (500, 700, "P. 3")],
                   boxes=[(224, 698, True), (326, 698, False)]),
         "Assuré? Oui ☒ Non ☐ P. 3"),
        (pdfs.form([(72, 700, "Blood group:"), (170, 700, "A"), (230, 700, "B")],
                   radios=[(150, 698, False), (210, 698, True)]),
         "Blood group: ☐ A ☒ B"),
        (pdfs.form([(72, 700, "Allergic?")], boxes=[(300, 698, True), (340, 698, False)]),
         "Allergic? ☒ ☐"),
        (pdfs.form([(72, 700, "A form.")], boxes=[(72, 300, True)]), "A form.\n\n☒ Box 1"),
    ],
    ids=["before labels", "behind labels", "radio buttons", "two for one label", "no label"],
)  # fmt: skip
def test_boxes_are_read_in_their_places_with_their_states(data: bytes, text: str) -> None:
    assert parsed(data).text == text


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (["The dose is 10", "6", " units."], "The dose is 10^6 units."),
        (["Der Druck von 10", "-3", " bar sinkt."], "Der Druck von 10^-3 bar sinkt."),
        (["Une surface de 25 m", "2", " suffit."], "Une surface de 25 m2 suffit."),
        (["As stated in the note", "12", " below."], "As stated in the note 12 below."),
        (["It ended in 1998", "12,13", " at last."], "It ended in 1998 12,13 at last."),
        (["It ended.", "4", " Then more."], "It ended. 4 Then more."),
        (["On the 21", "st", " of May."], "On the 21st of May."),
    ],
)
def test_raised_numbers_are_separated_from_text_before_them(parts: list[str], text: str) -> None:
    assert parsed(pdfs.raised([parts])).text == text


@pytest.mark.no_cover
@pytest.mark.slow
def test_thousands_of_raised_numbers_on_a_page_take_little_time() -> None:
    data = pdfs.raised([["10", "6"] * 100] * 400)
    started = process_time()
    parsed(data)
    assert process_time() - started < 10, "two seconds, and half a minute if all are marked"


def test_raised_number_of_a_link_or_footnote_is_no_power() -> None:
    lines = [["The year 2019", "5", " was dry, and 10", "6", " litres were lost."]]
    right = "The year 2019 5 was dry, and 10^6 litres were lost."
    assert parsed(pdfs.raised(lines, link="5")).text == right
    assert parsed(pdfs.raised(lines, footnote="5 See the minutes.")).text.startswith(right)


_ENDINGS = [
    "work", "yard", "mill", "house", "ford", "bridge", "gate", "field", "land", "wall", "side",
    "shore",
]  # fmt: skip
_WORDS = [first + end for first in ("Wood", "Stone", "Iron", "Rope") for end in _ENDINGS]


@pytest.mark.parametrize("title", ["Chapter", "Kapitel", "Capítulo"])
def test_titles_that_differ_in_their_number_are_no_repeated_headers(title: str) -> None:
    pages: list[list[tuple[Style, str]]] = []
    for n in range(1, 6):
        sentences = [f"{word} about {n} of its own." * 2 for word in _WORDS[n * 5 :][:20]]
        pages.append([("heading", f"{title} {n}"), *[("body", text) for text in sentences]])
    assert headings(parsed(pdfs.laid_out(pages))) == [(f"{title} {n}", 1, n) for n in range(1, 6)]


def test_large_header_of_all_pages_is_kept_once() -> None:
    pages: list[list[tuple[Style, str]]] = [
        [("heading", "Harbour Board"), *[("body", f"{w} says little.") for w in _WORDS[n:][:20]]]
        for n in range(6)
    ]
    assert parsed(pdfs.laid_out(pages)).text.count("Harbour Board") == 1


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
def test_pages_without_time_for_ocr_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.parametrize(
    ("texts", "title"),
    [
        ([(24, "A Package"), (24, "of Tides"), (11, "By me"), (14, "Contents")],
         "A Package of Tides"),
        ([(14, "Tides"), (11, "By me"), (14, "Contents"), (9, "1 Overview")], "Tides"),
        ([(24, "A"), (30, "7"), (11, "No word is large")], None),
        ([(11, "All of the text"), (12, "is of about one size")], None),
    ],
)  # fmt: skip
def test_the_title_is_the_largest_text(texts: list[tuple[int, str]], title: str | None) -> None:
    sized = enumerate(texts)
    lines = [f"BT /F1 {size} Tf 72 {700 - 40 * n} Td ({text}) Tj ET" for n, (size, text) in sized]
    body = [f"BT /F1 11 Tf 72 {400 - 14 * n} Td (Ordinary text goes on.) Tj ET" for n in range(9)]
    data = pdfs.by_hand("\n".join([*lines, *body]).encode())
    with PdfFile(data) as file:
        layout = pdf.PageLayout(file, ParseOptions(), ParseLimits())
        list(layout.iter_pages())
    assert layout.large_title == title
    assert parse_document(data, PDF).title == title or title is None


def test_what_a_picture_is() -> None:
    for data, picture in (
        (TYPED, False), (SCANNED, True), (pdfs.by_hand(b" "), False),
        (pdfs.by_hand(b"10 10 200 200 re f"), True),
    ):  # fmt: skip
        with PdfFile(data) as file:
            assert file.is_picture_page(1) is picture
