"""Documents to parse, by format: made from the benchmark's prose, or taken from the examples."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Mapping

from benchmarks import prose
from benchmarks.measure import PROJECT
from rag_assets.parsing import media_types

_HANDBOOK = PROJECT / "examples" / "handbook"
_SEED = 4
_LEAST = 20


def documents_of(media_type: str) -> list[bytes]:
    """Documents of a format; none if there are neither a maker nor examples of it.

    Examples are few: they are repeated, so that there is something to measure.
    """
    if media_type in _MAKERS:
        return _MAKERS[media_type]()
    suffixes = {suffix for suffix, kind in media_types.SUFFIXES.items() if kind == media_type}
    found = [
        path.read_bytes()
        for path in sorted(_HANDBOOK.rglob("*"))
        if path.is_file() and path.suffix.lower() in suffixes
    ]
    return found * -(-_LEAST // len(found)) if found else []


def _markdown() -> list[bytes]:
    return [_text(number).encode() for number in range(200)]


def _text(number: int) -> str:
    rng = random.Random(f"{_SEED}/{number}")
    return prose.document(rng, rng.randint(2, 12))


def _pdfs() -> list[bytes]:
    return [_pdf(number) for number in range(10)]


def _pdf(number: int) -> bytes:
    """A dozen pages or so of headings with bookmarks, paragraphs and tables."""
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer, Table

    rng = random.Random(f"{_SEED}/pdf/{number}")
    styles, story = getSampleStyleSheet(), []
    story.append(Paragraph(prose.title(rng), styles["Title"]))
    for _ in range(12):
        story.append(Paragraph(prose.title(rng), styles["Heading2"]))
        for _ in range(rng.randint(4, 8)):
            story += [Paragraph(prose.paragraph(rng), styles["BodyText"]), Spacer(1, 6)]
        if rng.random() < 0.4:
            rows = [[prose.slug(rng), str(rng.randint(1, 999))] for _ in range(8)]
            story.append(Table([["Name", "Count"], *rows]))
    out = io.BytesIO()
    SimpleDocTemplate(out, invariant=1).build(story)
    return out.getvalue()


_MAKERS: Mapping[str, Callable[[], list[bytes]]] = {
    media_types.MARKDOWN: _markdown,
    media_types.PDF: _pdfs,
}
