"""Mask credentials in a parsed document: in its text, headings and title."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rag_assets.ingest.parsing.model import Block, MaskedSpan, ParsedText
from rag_assets.ingest.parsing.outline import Outline
from rag_assets.ingest.parsing.table_credentials import credential_cells, joined
from rag_assets.privacy.secrets.spans import Scans, mask, redact


def masked(parsed: ParsedText, scanner: Scans) -> ParsedText:
    """Mask every credential in a parsed document.

    The whole text is scanned at once, since the name of a credential may be on the line above.
    Headings and title are then taken from the masked text; they are also scanned separately.

    Raises:
        TimeoutError: the scan took too long.
    """
    spans = credentials(parsed, scanner)
    if not spans:
        title = redact(parsed.title, scanner) if parsed.title else None
        blocks = tuple(_with_sheets(parsed.blocks, scanner))
        return replace(parsed, blocks=blocks, title=title)
    text = mask(parsed.text, spans)
    blocks = tuple(_with_sheets(_with_paths(parsed, text, spans, scanner), scanner))
    title = redact(_title(parsed, text, blocks), scanner) if parsed.title else None
    return replace(parsed, text=text, blocks=blocks, title=title, masked=spans)


def masked_again(parsed: ParsedText, scanner: Scans) -> tuple[ParsedText, list[str]] | None:
    """Mask credentials that other rules find in an already masked document.

    Returns:
        The text, in which earlier masks are kept, and the rule that found each new credential;
            None if there are no new credentials.

    Raises:
        TimeoutError: the scan took too long.
    """
    again = masked(parsed, scanner)
    if (again.text, again.title, again.blocks) == (parsed.text, parsed.title, parsed.blocks):
        return None
    found = [
        s.rule for s in again.masked if parsed.text[s.start : s.end] != again.text[s.start : s.end]
    ]
    if not found:
        names = [parsed.title or "", *(block.sheet or "" for block in parsed.blocks)]
        found = [span.rule for name in dict.fromkeys(names) for span in scanner.scan(name)]
    spans = joined([*parsed.masked, *again.masked])
    return replace(again, masked=spans), found


def credentials(parsed: ParsedText, scanner: Scans) -> tuple[MaskedSpan, ...]:
    """Find the credentials in the text of a document, by their form and by names in tables.

    Raises:
        TimeoutError: the scan took too long.
    """
    found = (MaskedSpan(s.start, s.end, s.rule) for s in scanner.scan(parsed.text))
    return joined([*found, *credential_cells(parsed)])


def _title(parsed: ParsedText, text: str, blocks: tuple[Block, ...]) -> str:
    """Return the title as it is in the masked text or heading from which it was taken."""
    title = parsed.title or ""
    for before, after in zip(parsed.blocks, blocks, strict=True):
        if before.kind == "heading" and before.heading_path[-1] == title:
            return after.heading_path[-1]
    at = parsed.text.find(title)
    return text[at : at + len(title)] if at >= 0 else title


def _with_paths(
    parsed: ParsedText, text: str, spans: Sequence[MaskedSpan], scanner: Scans
) -> Iterator[Block]:
    outline = Outline()
    first = 0
    for block in parsed.blocks:
        path = outline.path if block.kind != "front_matter" else ()
        if block.kind == "heading":
            while first < len(spans) and spans[first].end <= block.start:
                first += 1
            name = block.heading_path[-1]
            if first < len(spans) and spans[first].start < block.end:
                name = _masked_name(name, parsed.text, text, block)
            path = outline.enter(block.level, redact(name, scanner))
        yield replace(block, heading_path=path)


def _with_sheets(blocks: Iterable[Block], scanner: Scans) -> Iterator[Block]:
    """Mask the sheet names of blocks, since the text may not contain these names."""
    shown: dict[str, str] = {}
    for block in blocks:
        if block.sheet is None:
            yield block
            continue
        if block.sheet not in shown:
            shown[block.sheet] = redact(block.sheet, scanner)
        yield replace(block, sheet=shown[block.sheet])


def _masked_name(name: str, before: str, after: str, block: Block) -> str:
    """Return the masked name of a heading in which a credential was found.

    If the text does not contain the name, because it was cut or joined from two lines, the whole
    name is masked.
    """
    at = before.find(name, block.start, block.end)
    return after[at : at + len(name)] if at >= 0 else mask(name, [MaskedSpan(0, len(name), "")])
