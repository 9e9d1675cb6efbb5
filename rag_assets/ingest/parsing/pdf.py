"""PDF: blocks by tags or from liteparse, outline and title from pdfium, scanned pages by OCR.

The text consists of the blocks, joined by blank lines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cache
from itertools import dropwhile, islice, takewhile
from typing import TYPE_CHECKING, Self

from rag_assets.common.errors import DocumentEncrypted, DocumentRejected, DocumentScanned
from rag_assets.ingest.parsing.blocks import (
    MAX_HEADING_LEVEL,
    Piece,
    assemble,
    clean,
    clean_property_title,
    find_first_title,
    limit_pieces,
    shorten_heading,
)
from rag_assets.ingest.parsing.detection import PDF_MARK
from rag_assets.ingest.parsing.model import BlockKind, ParsedText
from rag_assets.ingest.parsing.ocr import (
    MAX_PIXELS,
    OcrTime,
    Pixels,
    TextReader,
    compute_ocr_seconds,
)
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.parsing.pdf_marks import (
    add_boxes,
    mark_raised_numbers,
    may_have_raised_numbers,
)
from rag_assets.ingest.parsing.pdf_outline import apply_outline
from rag_assets.ingest.parsing.pdf_tags import read_tagged_pages

if TYPE_CHECKING:
    from liteparse import LayoutBlock, LiteParse, ParsedPage, TextItem
    from pypdfium2 import PdfDocument, PdfPage


_TAIL_BYTES = 4_096
_NEEDS_PASSWORD = 4  # FPDF_ERR_PASSWORD
MAX_SCAN_CHARACTERS = 60
"""Maximum number of characters on a scanned page, since scanner apps stamp a line on each page."""
_MAX_OBJECTS = 500


class PdfFile:
    """An opened PDF, without any bytes before `%PDF`, and the password that opened it.

    Raises:
        DocumentRejected: the PDF is encrypted, truncated or damaged.
    """

    def __init__(self, data: bytes, passwords: Iterable[str] = ()) -> None:
        self.data = data[data.find(PDF_MARK) :]
        tail = self.data[-_TAIL_BYTES:]
        if b"%%EOF" not in tail and b"startxref" not in tail:
            # Without this check, pdfium would silently open only the remaining pages.
            raise DocumentRejected(
                "the PDF is truncated: its end is missing", hint="copy the file again"
            )
        self.document, self.password = _open_pdf(self.data, tuple(passwords))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.document.close()

    def __len__(self) -> int:
        """Return the number of pages."""
        return len(self.document)

    @property
    def title(self) -> str:
        """Return the title in the properties; "" if it is missing or cannot be decoded."""
        try:
            return str(self.document.get_metadata_value("Title"))
        except UnicodeDecodeError:
            return ""

    @contextmanager
    def open_page(self, number: int) -> Iterator[PdfPage]:
        """Open a page by its number, counted from 1; it is closed after the block."""
        page = self.document[number - 1]
        try:
            yield page
        finally:
            page.close()

    def is_picture_page(self, number: int) -> bool:
        """Return whether a page has graphics and little text, so it was scanned or drawn."""
        from pypdfium2 import PdfiumError
        from pypdfium2.raw import FPDF_PAGEOBJ_IMAGE

        try:
            with self.open_page(number) as page:
                text = page.get_textpage()
                characters = text.count_chars()
                text.close()
                if characters > MAX_SCAN_CHARACTERS:
                    return False
                objects = islice(page.get_objects(), _MAX_OBJECTS)
                kinds = {drawn.type for drawn in objects}
        except PdfiumError:
            return False
        return FPDF_PAGEOBJ_IMAGE in kinds or (not characters and bool(kinds))


def build_no_text_error(pages: int, *, uses_ocr: bool) -> DocumentRejected:
    """Return the error that rejects a PDF without any text."""
    if uses_ocr:
        return DocumentScanned(f"no text was found, not even by OCR ({pages:,} pages)")
    return DocumentScanned(
        f"the PDF has no text: scanned pages need OCR (pages without text: {pages:,})",
        hint="set parser.ocr: true for the tenant",
    )


def _open_pdf(data: bytes, passwords: tuple[str, ...]) -> tuple[PdfDocument, str | None]:
    import pypdfium2 as pdfium

    for password in (None, *passwords):
        try:
            return pdfium.PdfDocument(data, password=password), password
        except pdfium.PdfiumError as error:
            if getattr(error, "err_code", None) != _NEEDS_PASSWORD:
                raise DocumentRejected("the PDF is damaged and cannot be read") from None
    reason = ", and none of parser.passwords opens it" if passwords else " and needs a password"
    raise DocumentEncrypted(
        f"the document is encrypted{reason}",
        hint="add its password to parser.passwords, or store a copy without a password",
    )


_DOTS_PER_INCH = 200
_POINTS_PER_INCH = 72


def render_pixels(page: PdfPage) -> Pixels:
    """Return a page in shades of grey, at 200 dots per inch for pages up to A2."""
    picture = page.render(scale=_compute_scale(*page.get_size()), grayscale=True)
    try:
        return Pixels(bytes(picture.buffer), picture.width, picture.height, picture.stride)
    finally:
        picture.close()


def more_seconds(data: bytes, options: ParseOptions, limits: ParseLimits) -> float:
    """Return the seconds that OCR of scanned pages adds to a document's time limit."""
    if not options.ocr:
        return 0.0
    with PdfFile(data, options.passwords) as file:
        limits.check_pages(len(file))
        scanned = sum(map(file.is_picture_page, range(1, len(file) + 1)))
    return compute_ocr_seconds(min(scanned, limits.ocr_pages), limits)


def _compute_scale(width: float, height: float) -> float:
    """Return the scale of rendering in pixels per point, for a page of this size in points."""
    scale = _DOTS_PER_INCH / _POINTS_PER_INCH
    pixels = width * height * scale**2
    return scale if pixels <= MAX_PIXELS else scale * (MAX_PIXELS / pixels) ** 0.5


# Asterisks of the page itself are escaped, so an unescaped asterisk marks emphasis and is removed.
_MARKUP = re.compile(r"\\([!-/:-@\[-`{-~])|\*{1,3}")


def remove_markup(markdown: str) -> str:
    """Remove emphasis and escapes from a block's Markdown."""
    if "\\" not in markdown and "*" not in markdown:
        return markdown
    return _MARKUP.sub(lambda match: match[1] or "", markdown)


_BATCH_PAGES = 32
_MIN_KEPT_SHARE = 0.6
_QUARTER_DEGREES = 90
_TURNED_ANGLES = (90, 180, 270)
_MAX_SLANT_DEGREES = 2
_KINDS: Mapping[str, BlockKind] = {
    "heading": "heading",
    "paragraph": "paragraph",
    "list_item": "list",
    "table": "table",
    "code": "code",
    "grid_fallback": "code",
}


@cache
def warm_up() -> None:
    """Load libraries, and make pdfium reserve its gigabyte once, before limits are set."""
    from liteparse import LiteParse, ParseError

    with suppress(ParseError):
        LiteParse(ocr_enabled=False, num_workers=1, quiet=True).parse(b"%PDF-")


class PageLayout:
    """The layout of a PDF's pages, as analysed by liteparse."""

    def __init__(self, file: PdfFile, options: ParseOptions, limits: ParseLimits) -> None:
        self._file = file
        self._options = options
        self._limits = limits
        self._margins: set[tuple[str, int, int]] = set()
        self._titles: set[str] = set()
        self.large_title: str | None = None
        """The text in the largest type of the first page with text."""

    def iter_pages(self) -> Iterator[tuple[int, list[Piece]]]:
        """Yield the number of each readable page, counted from 1, and its pieces."""
        from liteparse import ParseError

        has_text = False
        parser = self._build_parser(keep_headers_footers=self._options.keep_headers_footers)
        try:
            for batch in parser.parse_batches(self._file.data, batch_size=_BATCH_PAGES):
                views = self._get_views(batch.result.pages)
                for page in batch.result.pages:
                    pieces = list(self._iter_pieces_of_views(views[page.page_num]))
                    if pieces and not has_text:
                        has_text, self.large_title = True, _find_large_title(page)
                    pieces = add_boxes(pieces, page)
                    yield page.page_num, self.mark_raised_numbers(pieces, page.page_num)
        except ParseError:
            # The library's message may quote the document.
            raise DocumentRejected("the PDF is damaged: its pages cannot be read") from None

    def mark_raised_numbers(self, pieces: list[Piece], number: int) -> list[Piece]:
        """Return the pieces of a page with marks before raised numbers."""
        from pypdfium2 import PdfiumError

        if not may_have_raised_numbers(pieces):
            return pieces
        try:
            with self._file.open_page(number) as page:
                text = page.get_textpage()
                try:
                    return mark_raised_numbers(pieces, page, text)
                finally:
                    text.close()
        except PdfiumError:
            return pieces

    def _get_views(self, pages: Sequence[ParsedPage]) -> dict[int, list[ParsedPage]]:
        """Return each page once for each direction of its text, the most common direction first."""
        sizes = {page.page_num: _count_by_angle(page) for page in pages}
        views = {0: {page.page_num: page for page in pages}}
        for angle in _TURNED_ANGLES:
            views[angle] = self._parse_pages(
                [number for number, counts in sizes.items() if angle in counts],
                angle,
                keep_headers_footers=self._options.keep_headers_footers,
            )
        for angle, upright in views.items():
            stripped = [number for number, page in upright.items() if _has_lost_text(page)]
            upright.update(self._parse_pages(stripped, angle, keep_headers_footers=True))
            self._restore_titles(upright, angle)
        return {
            number: [
                views[angle][number] for angle, _ in counts.most_common() if number in views[angle]
            ]
            for number, counts in sizes.items()
        }

    def _restore_titles(self, pages: dict[int, ParsedPage], angle: int) -> None:
        """Add titles at the top of pages that were dropped as repeated headers.

        Titles that differ only in their number, such as "Chapter 2", count as repeated. The same
        title is restored only once.
        """
        lost: dict[int, set[str]] = {}
        for number, page in pages.items():
            if titles := _find_lost_titles(page) - self._titles:
                lost[number] = titles
                self._titles |= titles
        for number, page in self._parse_pages(list(lost), angle, keep_headers_footers=True).items():
            headings = [
                block
                for block in page.blocks or []
                if block.kind == "heading"
                and any(title in _strip_blanks(block.text or "") for title in lost[number])
            ]
            pages[number] = replace(
                pages[number], blocks=[*headings, *(pages[number].blocks or [])]
            )

    def _parse_pages(
        self, numbers: list[int], angle: int, *, keep_headers_footers: bool
    ) -> dict[int, ParsedPage]:
        """Return pages by page number, turned so that text at this angle is upright."""
        if not numbers:
            return {}
        parser = self._build_parser(
            keep_headers_footers=keep_headers_footers,
            target_pages=",".join(map(str, numbers)),
            page_orientation_corrections=[(number, angle) for number in numbers],
        )
        return {page.page_num: page for page in parser.parse(self._file.data).pages}

    def _iter_pieces_of_views(self, views: list[ParsedPage]) -> Iterator[Piece]:
        for number, page in enumerate(views):
            for block in _iter_upright_blocks(page):
                piece = _build_piece(block, page.page_num)
                if piece and not (number and self._is_repeated(block, piece.text)):
                    yield piece

    def _is_repeated(self, block: LayoutBlock, text: str) -> bool:
        """Return whether a previous page has the same text in its margin, turned like this one."""
        if self._options.keep_headers_footers or block.bbox is None:
            return False
        key = (text, round(block.bbox.x), round(block.bbox.y))
        is_repeated = key in self._margins
        self._margins.add(key)
        return is_repeated

    def _build_parser(
        self,
        *,
        keep_headers_footers: bool,
        target_pages: str | None = None,
        page_orientation_corrections: list[tuple[int, int]] | None = None,
    ) -> LiteParse:
        from liteparse import LiteParse

        return LiteParse(
            ocr_enabled=False,
            output_format="markdown",
            image_mode="off",
            extract_links=False,
            extract_blocks=True,
            extract_form_fields=True,
            keep_headers_footers=keep_headers_footers,
            target_pages=target_pages,
            page_orientation_corrections=page_orientation_corrections,
            max_pages=self._limits.pages,
            continue_on_page_error=True,
            password=self._file.password,
            num_workers=1,
            quiet=True,
        )


def _build_piece(block: LayoutBlock, page: int) -> Piece | None:
    kind = _KINDS.get(block.kind)
    text = clean(_format_block(block)) if kind else ""
    if kind is None or not text:
        return None
    level = min(block.level or 1, MAX_HEADING_LEVEL) if kind == "heading" else 0
    return Piece(kind, text, level, page)


def _get_angle(item: TextItem) -> int:
    """Return the clockwise angle of a text: 0, 90, 180 or 270; 0 also for slanted text."""
    quarters = item.rotation / _QUARTER_DEGREES
    turns = round(quarters)
    is_slanted = abs(quarters - turns) * _QUARTER_DEGREES > _MAX_SLANT_DEGREES
    return 0 if is_slanted else turns % 4 * _QUARTER_DEGREES


def _count_by_angle(page: ParsedPage) -> Counter[int]:
    """Return the number of visible characters for each angle of a page's text, and for 0."""
    sizes = Counter({0: 0})
    for item in page.text_items:
        sizes[_get_angle(item)] += _count_visible(item.text)
    return sizes


def _iter_upright_blocks(page: ParsedPage) -> Iterator[LayoutBlock]:
    """Yield the blocks of a page, except those that consist of turned text."""
    turned = [item for item in page.text_items if _get_angle(item)]
    upright = [item for item in page.text_items if not _get_angle(item)] if turned else []
    for block in page.blocks or []:
        has_turned, has_upright = (
            any(_is_within(item, block) for item in items) for items in (turned, upright)
        )
        if has_upright or not has_turned:
            yield block


def _is_within(item: TextItem, block: LayoutBlock) -> bool:
    """Return whether the centre of a text is within a block."""
    x, y = item.x + item.width / 2, item.y + item.height / 2
    box = block.bbox
    return box is not None and 0 <= x - box.x <= box.width and 0 <= y - box.y <= box.height


def _has_lost_text(page: ParsedPage) -> bool:
    """Return whether too much of a page's text was dropped as repeated headers or footers."""
    blocks = _iter_upright_blocks(page)
    kept_characters = sum(_count_visible(_format_block(block)) for block in blocks)
    return kept_characters < _MIN_KEPT_SHARE * _count_by_angle(page)[0]


_MIN_TITLE_SIZE = 1.2
_MIN_SAME_SIZE = 0.98
_MAX_TITLE_LENGTH = 200
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W\d_]{2,}")


def _find_lost_titles(page: ParsedPage) -> set[str]:
    """Return texts above all blocks of a page that are larger than most of its text."""
    boxes = [block.bbox for block in page.blocks or [] if block.bbox]
    top = min((box.y for box in boxes), default=0.0)
    above = [item for item in page.text_items if item.y < top and _LETTER.search(item.text)]
    if not above:
        return set()
    sizes: Counter[float] = Counter()
    for item in page.text_items:
        sizes[item.font_size or 0.0] += _count_visible(item.text)
    (common, _), *_ = sizes.most_common(1)
    kept_text = _strip_blanks("".join(_format_block(block) for block in page.blocks or []))
    return {
        text
        for item in above
        if not _get_angle(item)
        and (item.font_size or 0.0) >= _MIN_TITLE_SIZE * common
        and (text := _strip_blanks(item.text)) not in kept_text
    }


def _find_large_title(page: ParsedPage) -> str | None:
    """Return the first text in the largest type of a page, if most text is clearly smaller.

    None for forms, because their values may be written in large type.
    """
    if page.form_fields:
        return None
    sizes: Counter[float] = Counter()
    for item in page.text_items:
        sizes[item.font_size or 0.0] += _count_visible(item.text)
    items = [item for item in page.text_items if abs(item.rotation) < _MAX_SLANT_DEGREES]
    words = [item for item in items if _WORD.search(item.text)]
    largest = max((item.font_size or 0.0 for item in words), default=0.0)
    (common, _), *_ = sizes.most_common(1) or [(0.0, 0)]
    if not largest or largest < _MIN_TITLE_SIZE * common:
        return None

    def is_smaller(item: TextItem) -> bool:
        return (item.font_size or 0.0) < _MIN_SAME_SIZE * largest

    lines = takewhile(lambda item: not is_smaller(item), dropwhile(is_smaller, items))
    title = clean(" ".join(item.text for item in lines))
    return shorten_heading(title) if len(title) <= _MAX_TITLE_LENGTH else None


def _strip_blanks(text: str) -> str:
    return "".join(text.split())


def _count_visible(text: str) -> int:
    return sum(map(len, text.split()))


def _format_block(block: LayoutBlock) -> str:
    if block.kind == "table":
        rows = [*([block.header] if block.header else []), *(block.rows or [])]
        return "\n".join(" | ".join(cell.text for cell in row) for row in rows)
    if block.lines:
        return "\n".join(block.lines)
    # Only running text is Markdown; headings and cells are plain text.
    text = block.text or "" if block.kind == "heading" else remove_markup(block.text or "")
    return f"{block.marker} {text}" if block.kind == "list_item" and block.marker else text


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Extract the text of a PDF block by block; see registry.ParseFunction."""
    with PdfFile(data, options.passwords) as file:
        limits.check_pages(len(file))
        reader = _PdfReader(file, options, limits)
        pieces = list(limit_pieces(reader.iter_pieces(), limits))
        if not pieces:
            raise reader.build_no_text_error()
        # Tags state which texts are headings; the layout only suggests it.
        has_tags = reader.has_tags
        text, blocks = assemble(pieces if has_tags else apply_outline(pieces, file.document))
        return ParsedText(
            text,
            blocks,
            title=clean_property_title(file.title)
            or (None if has_tags else reader.layout.large_title)
            or _find_first_page_title(pieces)
            or find_first_title(blocks),
            pages=len(file),
            ocr_pages=reader.ocr_pages,
            has_lines=False,
            notes=reader.build_notes(),
        )


class _PdfReader:
    """A reader of a PDF's pages; it counts readable pages, pictures and pages read by OCR."""

    def __init__(self, file: PdfFile, options: ParseOptions, limits: ParseLimits) -> None:
        self._file = file
        self._options = options
        self._limits = limits
        self.layout = PageLayout(file, options, limits)
        self._readable = 0
        self._pictures = 0
        self._time = OcrTime(limits)
        self.has_tags = False

    def iter_pieces(self) -> Iterator[Piece]:
        with ExitStack() as stack:
            reader: TextReader | None = None
            for number, pieces in self._iter_pages():
                self._readable += 1
                if _is_scanty(pieces) and self._file.is_picture_page(number):
                    self._pictures += 1
                    if self._options.ocr:
                        reader = reader or stack.enter_context(
                            TextReader(self._options.ocr_languages, self._options.ocr_data)
                        )
                        yield from self._read_page(reader, number) or pieces
                        continue
                yield from pieces

    def _iter_pages(self) -> Iterator[tuple[int, list[Piece]]]:
        """Yield the number of each readable page, and its pieces by its tags or its layout.

        Some programs tag headings as paragraphs. So tags without headings are used only if the
        layout shows no headings either.
        """
        keeps_all = self._options.keep_headers_footers
        tagged = [] if keeps_all else read_tagged_pages(self._file.document)
        if not _has_heading(tagged):
            laid_out = self.layout.iter_pages()
            if not tagged or _has_heading(pages := list(laid_out)):
                yield from pages if tagged else laid_out
                return
        self.has_tags = True
        for number, pieces in tagged:
            yield number, self.layout.mark_raised_numbers(pieces, number)

    @property
    def ocr_pages(self) -> int:
        """Return the number of pages that were read by OCR."""
        return self._time.read

    def build_no_text_error(self) -> DocumentRejected:
        """Return the error that states why no text was found."""
        self._time.require_any_page()
        if not self._readable:
            return DocumentRejected("the PDF is damaged: none of its pages can be read")
        return build_no_text_error(len(self._file), uses_ocr=self._options.ocr)

    def build_notes(self) -> tuple[str, ...]:
        """Return notes about parts of the document that were not read."""
        pages = len(self._file)
        notes = []
        if unreadable := pages - self._readable:
            notes.append(f"{unreadable:,} of {pages:,} pages are damaged and left out")
        if self._pictures and not self._options.ocr:
            notes.append(
                f"{self._pictures:,} of {pages:,} pages are pictures without text, OCR is off"
            )
        return (*notes, *self._time.build_notes(pages))

    def _read_page(self, reader: TextReader, number: int) -> list[Piece]:
        def read_paragraphs() -> Iterator[str]:
            with self._file.open_page(number) as page:
                pixels = render_pixels(page)
            return reader.read_paragraphs(pixels)

        return [
            Piece("paragraph", text, page=number)
            for text in self._time.read_paragraphs(read_paragraphs)
        ]


def _has_heading(pages: Iterable[tuple[int, list[Piece]]]) -> bool:
    return any(piece.kind == "heading" for _, pieces in pages for piece in pieces)


def _is_scanty(pieces: Sequence[Piece]) -> bool:
    return sum(len(piece.text) for piece in pieces) <= MAX_SCAN_CHARACTERS


def _find_first_page_title(pieces: list[Piece]) -> str | None:
    """Return the heading with the highest level on the first page; None if it has none."""
    headings = [p for p in pieces if p.kind == "heading" and p.page == pieces[0].page]
    return shorten_heading(min(headings, key=lambda p: p.level).text) if headings else None
