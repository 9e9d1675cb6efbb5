"""HTML: headings, paragraphs, lists, tables and code as a reader sees them.

Scripts and styles, hidden elements, navigation, form controls and a page's footer are omitted.
Elements around the text are recognized by their tag or role, or by the class that page generators
give them. Collapsed sections and the panels of all tabs are read. If a page has exactly one <main>,
everything around it is omitted too. No resource of a page is fetched.
"""

from __future__ import annotations

import codecs
import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from rag_assets.common.errors import DocumentEmpty, DocumentRejected
from rag_assets.ingest.parsing.blocks import (
    Piece,
    add_cell,
    assemble,
    clean,
    clean_property_title,
    find_first_title,
    format_row,
    get_power_mark,
    get_repeated_text,
    limit_pieces,
    shorten_heading,
)
from rag_assets.ingest.parsing.model import BlockKind, ParsedText
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.parsing.text import UTF8_MARK, UTF16_MARKS, decode_text

if TYPE_CHECKING:
    from lxml.etree import _Element


_CHARSET_REACH_BYTES = 1 << 16
_CHARSET = re.compile(
    rb"""<(?:meta|\?xml)\b[^>]{0,400}?(?:charset|encoding)\s{0,9}=\s{0,9}["']?([\w.:-]{2,40})""",
    re.IGNORECASE,
)
WESTERN = "cp1252"
"""The encoding that browsers assume if a page declares none."""
# Encodings that browsers use instead of the declared one, since pages often declare a wrong one.
_REPLACED_ENCODINGS = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874",
    "shift_jis": "cp932", "euc_kr": "cp949", "gb2312": "gb18030", "gbk": "gb18030",
    "utf-16": "utf-8", "utf-16-le": "utf-8", "utf-16-be": "utf-8",
}  # fmt: skip
_READABLE = re.compile(
    r"utf-8|cp125[0-8]|cp932|cp949|cp866|cp874|iso8859-\d{1,2}|koi8-[ru]|mac-(?:roman|cyrillic)"
    r"|euc_jp|iso2022_jp|gb18030|big5|big5hkscs|tis-620"
)
_HIDDEN_TAGS = frozenset({
    "script", "style", "noscript", "head", "title", "meta", "link", "nav",
    "iframe", "object", "embed", "applet", "canvas", "audio", "video", "svg", "map", "button",
    "select", "datalist", "input", "textarea", "dialog", "rp", "rt", "annotation",
    "annotation-xml",
})  # fmt: skip
_HIDDEN_ROLES = frozenset({"navigation", "menu", "menubar", "toolbar", "search", "dialog"})
_HIDDEN_STYLE = re.compile(
    r"(?:display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}hidden)", re.IGNORECASE
)
# Classes and ids of navigation, of links to a heading or its source, of numbers of lines, and of
# text for screen readers, as DocBook, Texinfo, Doxygen, Javadoc, Sphinx, Docusaurus, MediaWiki,
# Confluence and Bootstrap write them.
_HIDDEN_CLASS = re.compile(
    r"(?<![\w-])(?:nav(?:bar|box|header|footer|panel|path|igation)?|(?:doc|top|bottom|sub)-?nav"
    r"|nav-(?:panel|path)|breadcrumbs?(?:-section)?|pagination|catlinks|printfooter"
    r"|mw-(?:editsection|jump-link|navigation)|theme-(?:edit-this-page|doc-footer)"
    r"|headerlink|hash-link|copiable-link|viewcode-link"
    r"|skip-?(?:link|nav|to)[\w-]*|sr-only|visually-hidden|lineno(?:s|div)?)(?![\w-])",
    re.IGNORECASE,
)
# Classes of links to a heading, some of which contain the text of the heading. So they are hidden
# only if they contain no word, such as "¶" and "#".
_ANCHOR_CLASS = re.compile(
    r"(?<![\w-])(?:permalink|anchor(?:-link)?|(?:header|heading)-anchor)(?![\w-])", re.IGNORECASE
)
_WORD = re.compile(r"\w")
_FOUND_BY_SEARCH = "until-found"  # a value of `hidden`: a browser's search shows the element
_ARTICLES = frozenset({"article", "section", "main", "blockquote"})
BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details",
    "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3",
    "h4", "h5", "h6", "header", "hgroup", "hr", "html", "li", "main", "ol", "p", "pre",
    "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
})  # fmt: skip


def decode_page(data: bytes, limits: ParseLimits) -> str:
    """Decode a page in the encoding of its byte order mark, or its declared encoding.

    Without either, decode it as UTF-8, or else as browsers do.
    """
    if not data.startswith((*UTF16_MARKS, UTF8_MARK)):
        data = data.decode(_detect_encoding(data), "replace").replace("\0", "").encode()
    return decode_text(data, limits)


def find_encoding(declared: str) -> str | None:
    """Return the encoding to use for a declared one, as browsers do; None if it is unknown."""
    try:
        name = codecs.lookup(declared).name
    except (LookupError, UnicodeError, ValueError):
        return None
    name = _REPLACED_ENCODINGS.get(name, name)
    return name if _READABLE.fullmatch(name) else None


def _detect_encoding(data: bytes) -> str:
    match = _CHARSET.search(data[:_CHARSET_REACH_BYTES])
    if match is not None and (name := find_encoding(match[1].decode("latin-1"))) is not None:
        return name
    try:
        data.decode()
    except UnicodeDecodeError:
        return WESTERN
    return "utf-8"


def parse_tree(text: str) -> _Element | None:
    """Return the root element of a page; None if it has none.

    Raises:
        DocumentRejected: the elements are nested too deeply.
    """
    from lxml import etree

    parser = etree.HTMLParser(
        encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(text.encode(), parser)
    except etree.XMLSyntaxError:  # the text contains no element
        root = None
    if any("depth" in error.message.lower() for error in parser.error_log):
        raise DocumentRejected("the elements of the page are nested too deeply")
    return root


def is_visible(element: _Element) -> bool:
    """Return whether a reader sees an element, and it belongs to the page's own text."""
    tag, attributes = element.tag, element.attrib
    if tag == "template":
        return "shadowrootmode" in attributes  # browsers show such a template in place
    if tag in _HIDDEN_TAGS:
        return False
    role = attributes.get("role")
    if (tag == "footer" or role == "contentinfo") and not _is_within_article(element):
        return False
    if not attributes:
        return True
    return not (
        attributes.get("hidden", _FOUND_BY_SEARCH) != _FOUND_BY_SEARCH
        or role in _HIDDEN_ROLES
        or ("style" in attributes and _HIDDEN_STYLE.search(attributes["style"]))
        or _has_hidden_class(element)
    )


def _has_hidden_class(element: _Element) -> bool:
    """Return whether a class or id says that an element surrounds the text of the page.

    An element with a heading is never hidden: it is more than navigation.
    """
    names = f"{element.get('class', '')} {element.get('id', '')}"
    if _HIDDEN_CLASS.search(names):
        return not _has_heading(element)
    return _ANCHOR_CLASS.search(names) is not None and not any(
        _WORD.search(text) for text in element.itertext(with_tail=False)
    )


def _is_within_article(element: _Element) -> bool:
    return any(above.tag in _ARTICLES for above in element.iterancestors())


def get_flat_text(element: _Element, without: frozenset[str] = frozenset()) -> str:
    """Return the visible text of an element on one line, without inner elements with these tags."""
    parts: list[str] = []
    _flatten(element, without, parts)
    return " ".join("".join(parts).split())


def _flatten(element: _Element, without: frozenset[str], parts: list[str]) -> None:
    parts.append(element.text or "")
    for child in element:
        if child.tag not in without and is_visible(child):
            apart = child.tag in BLOCKS or child.tag == "br"
            parts.append(" " if apart else _get_separator(child, parts))
            _flatten(child, without, parts)
            parts.append(" " if apart else "")
        parts.append(child.tail or "")


def _get_separator(element: _Element, before: list[str]) -> str:
    """Return what an inline element needs before it, so that no two numbers become one.

    This is "^" before a power, "/" before a denominator, a blank before the number of a note (a
    link), and "" before any other element.
    """
    above = element.getparent()
    if above is not None and above.tag == "mfrac":
        return "/" if element.getprevious() is not None else ""
    is_raised = element.tag == "sup" or (
        above is not None and above.tag == "msup" and element.getprevious() is not None
    )
    mark = get_power_mark(before, "".join(element.itertext())) if is_raised else ""
    return " " if mark and next(element.iter("a"), None) is not None else mark


def get_preformatted_text(element: _Element) -> str:
    """Return the visible text of an element, with line ends and spaces as written."""
    parts: list[str] = []
    _collect_verbatim(element, parts)
    return "".join(parts).replace("\r\n", "\n").strip("\n")


def _collect_verbatim(element: _Element, parts: list[str]) -> None:
    parts.append(element.text or "")
    for child in element:
        if child.tag == "br":
            parts.append("\n")
        elif is_visible(child):
            _collect_verbatim(child, parts)
        parts.append(child.tail or "")


_HEADINGS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}
_TITLES = frozenset({*_HEADINGS, "dt", "summary"})
_BUTTONS = frozenset({"button"})
_LISTS = frozenset({"ul", "ol", "dir"})
_STRUCTURED = (*_HEADINGS, "table", "pre")  # elements that cannot be on a line of a list or table
_LINE_BREAK = "\x1e"  # occurs in no text; tells line breaks from line ends in the source
# The whole text of an element that scripts fill when the page is shown, in any language.
_PLACEHOLDER = re.compile(r".{0,50}(?:…|\.\.\.)", re.DOTALL)
_MAX_SPAN = 1_000
_MAX_DIGITS = 9


class _SpanningCell(NamedTuple):
    """A cell that spans several rows: its text, the number of rows left, and its columns."""

    text: str
    rows: int
    columns: int


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Read a web page; see registry.ParseFunction."""
    page_pieces, head_title = read_page(decode_page(data, limits))
    pieces = list(limit_pieces(page_pieces, limits))
    if not pieces:
        raise DocumentEmpty("the page contains no text that a reader would see")
    if (
        len(pieces) == 1
        and pieces[0].kind == "paragraph"
        and _PLACEHOLDER.fullmatch(pieces[0].text)
    ):
        raise DocumentEmpty("the page contains only a placeholder; scripts load its text")
    text, blocks = assemble(pieces)
    first = [piece.text for piece in pieces if piece.level == 1]
    title = shorten_heading(first[0]) if len(first) == 1 else head_title or find_first_title(blocks)
    return ParsedText(text, blocks, title, has_lines=False)


def read_page(text: str) -> tuple[list[Piece], str | None]:
    """Return the pieces of a page, and the title in its head."""
    root = parse_tree(text)
    if root is None:
        return [], None
    title = root.find("head/title")
    head_title = clean_property_title(get_flat_text(title)) if title is not None else None
    _show_collapsed_sections(root)
    _show_tab_panels(root)
    page = _PageReader()
    page.read(_find_main(root))
    return page.pieces, head_title


def _find_main(root: _Element) -> _Element:
    """Return the page's only <main> element if it has text, else <body> or the root.

    A <main> that contains a mere placeholder is removed: a saved page has its text elsewhere.
    """
    candidates = [e for e in root.iter("main", "div") if e.tag == "main" or e.get("role") == "main"]
    if len(candidates) == 1 and is_visible(candidates[0]):
        text = get_flat_text(candidates[0])
        if text and (_has_heading(candidates[0]) or not _PLACEHOLDER.fullmatch(text)):
            return candidates[0]
        candidates[0].clear(keep_tail=True)
    body = root.find("body")
    return root if body is None else body


def _show_collapsed_sections(root: _Element) -> None:
    """Turn buttons that are titles into text, and show the sections that they unfold."""
    by_id = {name: element for element in root.iter() if (name := element.get("id"))}
    titles: set[_Element] = set()
    for button in list(root.iter("button")):
        title = button if _has_heading(button) else _find_title(button)
        if title is None or title in titles:
            continue
        titles.add(title)
        if title is not button and get_flat_text(title, _BUTTONS):
            continue  # the button is not the title, but for instance copies the title's address
        section = by_id.get(button.get("aria-controls", ""))
        if section is None and "aria-expanded" in button.attrib:
            section = title.getnext()
        if section is not None:
            _show(section)
        button.tag = "span"


def _find_title(element: _Element) -> _Element | None:
    """Return the title that contains an element; None if there is none."""
    above = element.iterancestors()
    return next((e for e in above if e.tag in _TITLES or e.get("role") == "heading"), None)


def _has_heading(element: _Element) -> bool:
    return next(element.iter(*_HEADINGS), None) is not None


def _is_heading(element: _Element) -> bool:
    return _has_heading(element) or _find_title(element) is not None


def _show(element: _Element) -> None:
    for attribute in ("hidden", "style"):
        element.attrib.pop(attribute, None)


def _show_tab_panels(root: _Element) -> None:
    """Show the panels of tabs, each below the label of its tab.

    A tab belongs to the panel that either of them names, or else to the panel at the same place in
    their order. Tabs that are headings stay where they are.
    """
    elements = [e for e in root.iter() if e.get("role") in {"tab", "tabpanel"}]
    tabs = [e for e in elements if e.get("role") == "tab"]
    by_id = {name: tab for tab in tabs if (name := tab.get("id"))}
    by_panel_id = {name: tab for tab in tabs if (name := tab.get("aria-controls"))}
    # For each panel, or the page: the tabs directly within it whose panels follow, in order.
    waiting: dict[_Element | None, deque[_Element]] = {}
    previous: dict[_Element | None, str] = {}
    for element in elements:
        role = element.get("role", "")
        outer = next((e for e in element.iterancestors() if e.get("role") == "tabpanel"), None)
        if role == "tab":
            if previous.get(outer) != "tab":
                waiting[outer] = deque()
            waiting[outer].append(element)
        else:
            following = waiting.get(outer)
            tab = following.popleft() if following else None
            tab = by_panel_id.get(element.get("id", ""), tab)
            tab = by_id.get(element.get("aria-labelledby", ""), tab)
            _show(element)
            if tab is not None and tab not in element.iterancestors() and not _is_heading(tab):
                label = element.makeelement("p")
                label.text = get_flat_text(tab)
                element.addprevious(label)
                tab.clear(keep_tail=True)
        previous[outer] = role


class _PageReader:
    """A reader that converts a page's elements to pieces."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self._buffer: list[str] = []
        self._readers: dict[str, Callable[[_Element], None]] = {
            **dict.fromkeys(_HEADINGS, self._add_heading),
            **dict.fromkeys(_LISTS, self._add_list),
            "dl": self._add_definitions,
            "table": self._add_table,
            "pre": self._add_code,
        }

    def read(self, element: _Element) -> None:
        """Read an element as separate blocks, and append them to `pieces`."""
        self._end_paragraph()
        self._read_content(element)
        self._end_paragraph()

    def _read_content(self, element: _Element) -> None:
        self._buffer.append(element.text or "")
        for child in element:
            tag = child.tag
            if tag == "br":
                self._buffer.append(_LINE_BREAK)
            elif not is_visible(child):
                pass
            elif tag in self._readers:
                self._end_paragraph()
                self._readers[tag](child)
            elif tag in BLOCKS:
                self.read(child)
            else:
                self._buffer.append(_get_separator(child, self._buffer))
                self._read_content(child)
            self._buffer.append(child.tail or "")

    def _end_paragraph(self) -> None:
        lines = "".join(self._buffer).split(_LINE_BREAK)
        self._buffer.clear()
        self._add("paragraph", "\n".join(" ".join(line.split()) for line in lines))

    def _add(self, kind: BlockKind, text: str, level: int = 0) -> None:
        text = clean(text) if kind != "code" else text
        if text:
            self.pieces.append(Piece(kind, text, level))

    def _add_heading(self, element: _Element) -> None:
        name = get_flat_text(element).rstrip(
            "¶ "
        )  # ¶ is a link to the heading, which many pages add
        self._add("heading", name, _HEADINGS[element.tag])

    def _add_code(self, element: _Element) -> None:
        self._add("code", get_preformatted_text(element))

    def _add_list(self, element: _Element) -> None:
        if next(element.iterdescendants(*_STRUCTURED), None) is not None:
            self.read(element)
        else:
            self._add("list", "\n".join(_iter_items(element, "")))

    def _add_definitions(self, element: _Element) -> None:
        if next(element.iterdescendants(*_STRUCTURED, *_LISTS), None) is not None:
            self.read(element)
            return
        marks = {"dt": "- ", "dd": "  "}
        # An entry may contain others: libxml2 does not close <dd>, and definitions may be nested.
        inner = frozenset(marks)
        entries = ((e.tag, get_flat_text(e, inner)) for e in element.iter(*marks) if is_visible(e))
        self._add("list", "\n".join(marks[tag] + text for tag, text in entries if text))

    def _add_table(self, element: _Element) -> None:
        rows = [list(_iter_cells(row)) for row in _iter_rows(element)]
        if max(map(len, rows), default=0) < 2 or _is_layout(element, rows):  # noqa: PLR2004
            self.read(element)
            return
        for caption in element.iterchildren("caption"):
            self._add("paragraph", get_flat_text(caption))
        self._add("table", "\n".join(filter(None, _iter_lines(rows))))


def _iter_items(element: _Element, indent: str) -> Iterator[str]:
    """Yield each item of a list on a line, with nested items indented below it."""
    number = _parse_number(element, "start", 1) - 1
    for child in element:
        if child.tag in _LISTS:
            yield from _iter_items(child, indent + "  ")
        elif is_visible(child):
            number = _parse_number(child, "value", number + 1)
            marker = f"{number}." if element.tag == "ol" else "-"
            if text := get_flat_text(child, _LISTS):
                yield f"{indent}{marker} {text}"
            for inner in _iter_inner_lists(child):
                yield from _iter_items(inner, indent + "  ")


def _parse_number(element: _Element, attribute: str, default: int) -> int:
    value = element.get(attribute, "").strip()[:_MAX_DIGITS]
    return int(value) if value.isdecimal() else default


def _iter_inner_lists(element: _Element) -> Iterator[_Element]:
    for child in element:
        if child.tag in _LISTS:
            yield child
        elif is_visible(child):
            yield from _iter_inner_lists(child)


def _iter_rows(table: _Element) -> Iterator[_Element]:
    for child in table:
        if child.tag == "tr" and is_visible(child):
            yield child
        elif child.tag in {"thead", "tbody", "tfoot"} and is_visible(child):
            yield from (row for row in child.iterchildren("tr") if is_visible(row))


def _is_layout(table: _Element, rows: list[list[_Element]]) -> bool:
    """Return whether a table arranges parts of a page, or has cells that do not fit on a line.

    A table whose cells contain headings or code is data if it has two header cells.
    """
    if next(table.iterdescendants(*_STRUCTURED), None) is None:
        return False
    cells = [cell for row in rows for cell in row]
    has_header = sum(cell.tag == "th" for cell in cells) >= 2  # noqa: PLR2004
    return not (has_header and all(map(_fits_on_a_line, cells)))


def _fits_on_a_line(cell: _Element) -> bool:
    structured = list(cell.iterdescendants(*_STRUCTURED))
    return len(structured) <= 1 and all(
        e.tag in _HEADINGS or (e.tag == "pre" and "\n" not in get_preformatted_text(e))
        for e in structured
    )


def _iter_cells(row: _Element) -> Iterator[_Element]:
    return (cell for cell in row.iterchildren("td", "th") if is_visible(cell))


def _iter_lines(rows: list[list[_Element]]) -> Iterator[str]:
    """Yield each row of a table as a line; a cell is repeated in each row that it spans.

    A cell that spans several columns is followed by empty cells, so that the next cells keep their
    columns.
    """
    spanning: dict[int, _SpanningCell] = {}
    width = min(max(map(len, rows), default=0), _MAX_SPAN)
    for row in rows:
        cells: list[str] = []
        column = 0
        for cell in (*row, None):
            while (above := spanning.pop(column, None)) is not None:
                add_cell(cells, above.text, above.columns, width)
                if above.rows > 1:
                    spanning[column] = above._replace(rows=above.rows - 1)
                column += above.columns
            if cell is not None:
                text, columns = get_flat_text(cell), _parse_span(cell, "colspan")
                add_cell(cells, text, columns, width)
                if (more := _parse_span(cell, "rowspan") - 1) > 0:
                    spanning[column] = _SpanningCell(get_repeated_text(text), more, columns)
                column += columns
        yield clean(format_row(cells))


def _parse_span(cell: _Element, attribute: str) -> int:
    value = cell.get(attribute, "1").strip()[:4]
    return max(1, min(int(value), _MAX_SPAN)) if value.isdecimal() else 1
