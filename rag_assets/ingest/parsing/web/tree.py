"""Parse the bytes of a web page into an element tree, and recognize invisible elements."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

from rag_assets.common.errors import DocumentRejected
from rag_assets.ingest.parsing.limits import ParseLimits
from rag_assets.ingest.parsing.text.decoding import UTF16_MARKS, decoded

if TYPE_CHECKING:
    from lxml.etree import _Element

_UTF8_MARK = b"\xef\xbb\xbf"
_CHARSET_WITHIN = 4_096
_CHARSET = re.compile(
    rb"""<(?:meta|\?xml)\b[^>]{0,400}?(?:charset|encoding)\s{0,9}=\s{0,9}["']?([\w.:-]{2,40})""",
    re.IGNORECASE,
)
_FALLBACK = "cp1252"  # the encoding that browsers assume if a page declares none
# Encodings that browsers use instead of the declared one, since pages often declare a wrong one.
_MEANT = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874",
    "shift_jis": "cp932", "euc_kr": "cp949", "gb2312": "gb18030", "gbk": "gb18030",
    "utf-16": "utf-8", "utf-16-le": "utf-8", "utf-16-be": "utf-8",
}  # fmt: skip
_READABLE = re.compile(
    r"utf-8|cp125[0-8]|cp932|cp949|cp866|cp874|iso8859-\d{1,2}|koi8-[ru]|mac-(?:roman|cyrillic)"
    r"|euc_jp|iso2022_jp|gb18030|big5|big5hkscs|tis-620"
)
_UNSEEN = frozenset({
    "script", "style", "noscript", "template", "head", "title", "meta", "link", "nav",
    "iframe", "object", "embed", "applet", "canvas", "audio", "video", "svg", "map", "button",
    "select", "datalist", "input", "textarea", "dialog", "rp", "rt",
})  # fmt: skip
_UNSEEN_ROLES = frozenset({"navigation", "menu", "menubar", "toolbar", "search", "dialog"})
_HIDDEN = re.compile(
    r"(?:display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}hidden)", re.IGNORECASE
)
_ARTICLES = frozenset({"article", "section", "main", "blockquote"})
BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details",
    "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3",
    "h4", "h5", "h6", "header", "hgroup", "hr", "html", "li", "main", "ol", "p", "pre",
    "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
})  # fmt: skip


def page_text(data: bytes, limits: ParseLimits) -> str:
    """Decode a page by its byte order mark, its declaration, as UTF-8, or else as browsers do.

    Raises:
        DocumentRejected: the page is empty, or too long.
    """
    if not data.startswith((*UTF16_MARKS, _UTF8_MARK)):
        data = data.decode(_encoding(data), "replace").replace("\0", "").encode()
    return decoded(data, limits)


def _encoding(data: bytes) -> str:
    found = _CHARSET.search(data[:_CHARSET_WITHIN])
    if found is not None:
        try:
            name = codecs.lookup(found[1].decode("ascii")).name
        except (LookupError, UnicodeDecodeError, ValueError):
            name = ""
        name = _MEANT.get(name, name)
        if _READABLE.fullmatch(name):
            return name
    try:
        data.decode()
    except UnicodeDecodeError:
        return _FALLBACK
    return "utf-8"


def page_tree(text: str) -> _Element | None:
    """Return the root of a page; None if it has no elements.

    No resource of a page is fetched. libxml2 stops at 255 levels of nesting.

    Raises:
        DocumentRejected: the page is nested more deeply than that.
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


def is_seen(element: _Element) -> bool:
    """Return whether a reader sees an element as part of the page's own text."""
    tag, attributes = element.tag, element.attrib
    if tag in _UNSEEN or (tag == "footer" and not _within_article(element)):
        return False
    if not attributes:
        return True
    return not (
        "hidden" in attributes
        or attributes.get("role") in _UNSEEN_ROLES
        or ("style" in attributes and _HIDDEN.search(attributes["style"]))
    )


def _within_article(element: _Element) -> bool:
    return any(above.tag in _ARTICLES for above in element.iterancestors())


def flat_text(element: _Element, without: frozenset[str] = frozenset()) -> str:
    """Return the visible text of an element on one line, except elements in `without`."""
    parts: list[str] = []
    _flatten(element, without, parts)
    return " ".join("".join(parts).split())


def _flatten(element: _Element, without: frozenset[str], parts: list[str]) -> None:
    parts.append(element.text or "")
    for child in element:
        if child.tag not in without and is_seen(child):
            apart = child.tag in BLOCKS or child.tag == "br"
            parts.append(" " if apart else "")
            _flatten(child, without, parts)
            parts.append(" " if apart else "")
        parts.append(child.tail or "")


def preformatted(element: _Element) -> str:
    """Return the visible text of an element, with line ends and spaces as written."""
    parts: list[str] = []
    _verbatim(element, parts)
    return "".join(parts).replace("\r\n", "\n").strip("\n")


def _verbatim(element: _Element, parts: list[str]) -> None:
    parts.append(element.text or "")
    for child in element:
        if child.tag == "br":
            parts.append("\n")
        elif is_seen(child):
            _verbatim(child, parts)
        parts.append(child.tail or "")
