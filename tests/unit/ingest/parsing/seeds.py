"""A small, valid document for every parser, which the fuzz tests damage.

Every text in a document contains the marker, so a refusal that quotes any of it is noticed.
"""

from collections.abc import Mapping
from email.message import EmailMessage
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from rag_assets.ingest.parsing import media_types
from rag_assets.ingest.parsing.media_types import find_media_type
from rag_assets.ingest.parsing.registry import PARSERS
from tests.unit.ingest.parsing.office_files import slides, word, workbook

_HANDBOOK = Path(__file__).parents[4] / "examples" / "handbook"
_LARGEST = 100_000
MARKER = "Xylophone"


class Seed(NamedTuple):
    """A document, and its declared media type."""

    data: bytes
    media_type: str


def _markdown() -> bytes:
    return (
        f"---\ntitle: {MARKER}\ntags: [a, b]\n---\n\n# {MARKER} 1\n\nText *of* `{MARKER}`.\n\n"
        f"Setext {MARKER}\n======\n\n- item\n  1. {MARKER}\n\n> quoted\n\n"
        f"```py\n{MARKER} = 1\n```\n\n| a | {MARKER} |\n|---|---|\n| 1 | 2 |\n\n"
        f"<!-- {MARKER} -->\n\n[a]: http://x\n\n***\n\nend\n"
    ).encode()


def _mdx() -> bytes:
    return (
        f'import X from "{MARKER}"\n\n# {MARKER}\n\n<X a={{1}}>\n\nText {{{MARKER}}}.\n\n</X>\n\n'
        f"{{/* {MARKER} */}}\n\nexport const a = {{\n  b: 1,\n}}\n\n## Next\n\n- {MARKER}\n"
    ).encode()


def _asciidoc() -> bytes:
    return (
        f"= {MARKER}\n:attribute: {MARKER}\n\n// {MARKER}\n\n== {MARKER} 1\n\n* item {MARKER}\n\n"
        f"[source]\n----\n{MARKER}\n----\n\n|===\n|a |{MARKER}\n|===\n\n"
        f"{MARKER}\n---------\n\nend\n"
    ).encode()


def _rst() -> bytes:
    return (
        f"========\n{MARKER}\n========\n\n:Author: {MARKER}\n\nText::\n\n    literal {MARKER}\n\n"
        f"Section\n-------\n\n.. code-block:: py\n\n   {MARKER} = 1\n\n.. a comment\n\n"
        f"===  ===\na    b\n===  ===\n1    {MARKER}\n===  ===\n\n"
        f"+---+---+\n| a | b |\n+---+---+\n\n* item\n\n  {MARKER}\n\n.. _target:\n\n|sub| end\n"
    ).encode()


def _source_code() -> bytes:
    return (
        f'"""{MARKER}."""\n\nimport os\n\n\ndef {MARKER}():\n    return "é"\n\n\nA = 1\n'.encode()
    )


def _csv() -> bytes:
    return f'name,{MARKER},"a ""b"""\nx,1,"two\nlines"\n{MARKER},,;\n\n"",3\t4,|\n'.encode()


def _tsv() -> bytes:
    return f'name\t{MARKER}\nx\t"1\n2"\n{MARKER}\t\n'.encode()


def _html() -> bytes:
    return (
        f'<!DOCTYPE html><html lang=en><head><meta charset="utf-8"><title>{MARKER}</title></head>'
        f"<body><nav>x</nav><main><h1>{MARKER}</h1><p>Text <b>of</b><br>{MARKER} &amp; &#233;</p>"
        f"<ul><li>a<ol><li>{MARKER}</ol></ul><table><caption>c</caption><tr><th rowspan=2>{MARKER}"
        f"<td colspan=3>b</tr><tr><td>c</table><pre>  {MARKER}\n x</pre><dl><dt>t<dd>d</dl>"
        f"<h3>deep</h3><blockquote>{MARKER}</blockquote><footer>x</footer></main></body></html>"
    ).encode()


def _pdf() -> bytes:
    from io import BytesIO

    from reportlab.pdfgen.canvas import Canvas

    out = BytesIO()
    canvas = Canvas(out, pagesize=(612, 792), pageCompression=0, invariant=1)
    canvas.setTitle(f"About {MARKER}")
    for number in range(2):
        canvas.bookmarkPage(f"p{number}")
        canvas.addOutlineEntry(f"{MARKER} {number}", f"p{number}", number)
        canvas.setFont("Helvetica-Bold", 20)
        canvas.drawString(72, 700, f"{MARKER} {number}")
        canvas.setFont("Helvetica", 11)
        for line in range(4):
            canvas.drawString(72, 660 - 14 * line, f"A line of ordinary text, {MARKER}.")
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def _docx() -> bytes:
    def build(document: Any) -> None:
        document.add_heading(MARKER, 1)
        document.add_paragraph(f"Text of {MARKER}")
        document.add_paragraph("item", style="List Bullet")
        document.add_paragraph(MARKER, style="List Number")
        table = document.add_table(2, 2)
        table.cell(0, 0).merge(table.cell(1, 0)).text = MARKER

    return word(build, title=f"About {MARKER}")


def _pptx() -> bytes:
    def build(deck: Any) -> None:
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = MARKER
        slide.placeholders[1].text = f"{MARKER}\nsecond"
        slide.notes_slide.notes_text_frame.text = f"Say {MARKER}"
        slide.shapes.add_table(1, 2, 0, 0, 9, 9).table.cell(0, 1).text = MARKER

    return slides(build)


def _xlsx() -> bytes:
    def build(book: Any) -> None:
        sheet = book.add_worksheet(MARKER)
        sheet.write_row(0, 0, ["Name", MARKER, "When"])
        date = book.add_format({"num_format": "yyyy-mm-dd"})
        for row in range(1, 4):
            sheet.write_row(row, 0, [MARKER, row / 3])
            sheet.write_number(row, 2, 45_000 + row, date)
        sheet.write_formula(4, 0, "=1+1", None, 2)
        sheet.merge_range(5, 0, 6, 1, MARKER)
        book.add_worksheet("Other").write(3, 3, True)

    return workbook(build)


def _mail() -> bytes:
    made = EmailMessage()
    made["From"] = f'"{MARKER}" <a@example.org>'
    made["To"] = "b@example.org"
    made["Date"] = "Mon, 02 Mar 2026 09:00:00 +0100"
    made["Message-ID"] = "<1@example.org>"
    made["Subject"] = f"Größe {MARKER}"
    made.set_content(f"Text é {MARKER}\n\n> quoted\n", cte="quoted-printable")
    made.add_alternative(f"<p>Text {MARKER}</p>", subtype="html")
    made.add_attachment(f"a,b\n1,{MARKER}\n", subtype="csv", filename=f"{MARKER}.csv")
    inner = EmailMessage()
    inner["Subject"] = f"Inner {MARKER}"
    inner.set_content(MARKER)
    made.add_attachment(inner)
    return made.as_bytes()


_MAKERS = MappingProxyType(
    {
        "text.delimited": ((_csv, media_types.CSV), (_tsv, media_types.TSV)),
        "office.docx": ((_docx, media_types.DOCX),),
        "mail.message": ((_mail, media_types.EML),),
        "text.markdown": ((_markdown, media_types.MARKDOWN),),
        "text.mdx": ((_mdx, media_types.MDX),),
        "pdf.pdf": ((_pdf, media_types.PDF),),
        "text.plain": ((_markdown, media_types.PLAIN),),
        "office.pptx": ((_pptx, media_types.PPTX),),
        "text.rst": ((_rst, media_types.RST),),
        "text.asciidoc": ((_asciidoc, media_types.ASCIIDOC),),
        "text.source_code": ((_source_code, "text/x-python"),),
        "web.page": ((_html, media_types.HTML),),
        "office.xlsx": ((_xlsx, media_types.XLSX),),
    }
)


@cache
def seeds() -> Mapping[str, tuple[Seed, ...]]:
    """Return documents with the marker, by the id of their parser."""
    return {
        parser: tuple(Seed(make(), media_type) for make, media_type in makers)
        for parser, makers in _MAKERS.items()
    }


@cache
def handbook(parser: str) -> tuple[Seed, ...]:
    """Return the handbook's documents for a parser: richer ones, without the marker."""
    found = ((path, find_media_type(path.name)) for path in sorted(_HANDBOOK.rglob("*")))
    return tuple(
        Seed(path.read_bytes(), media_type)
        for path, media_type in found
        if media_type in PARSERS
        and PARSERS[media_type].id == parser
        and path.stat().st_size <= _LARGEST
    )
