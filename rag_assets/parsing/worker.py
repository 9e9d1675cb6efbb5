"""The process in which documents are parsed, scanned and masked.

Reads documents from standard input and writes outcomes to standard output, one message each (see
messages.py). It ends when its parent does: standard input closes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from rag_assets.errors import DocumentRejected
from rag_assets.parsing.messages import read_message, write_message
from rag_assets.parsing.model import Block, MaskedSpan, ParsedText
from rag_assets.parsing.records import to_record
from rag_assets.secrets.masking import mask, redact
from rag_assets.secrets.scanner import SecretScanner


def main() -> None:
    """Serve until standard input closes."""
    memory, cache, max_characters = int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    # Anything that prints must not end up between two messages.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _limit(memory)
    scanner = SecretScanner(cache)
    scanner.load()
    while (message := read_message(sys.stdin.buffer)) is not None:
        header, data = message
        write_message(out, {"key": header["key"], **_outcome(data, scanner, max_characters)})


def _outcome(data: bytes, scanner: SecretScanner, max_characters: int) -> dict[str, Any]:
    from rag_assets.parsing.detect import parse

    try:
        parsed = parse(data)
        if len(parsed.text) > max_characters:
            raise DocumentRejected(
                f"its text has {len(parsed.text):,} characters, over the limit of"
                f" {max_characters:,}"
            )
        return {"parsed": to_record(_masked(parsed, scanner))}
    except DocumentRejected as error:
        return {"rejected": error.message}
    except MemoryError:
        return {"too_costly": "it needs more memory than one document may use"}
    except RecursionError:
        return {"rejected": "it is nested too deeply"}
    except TimeoutError:
        return {"rejected": "scanning it for credentials took too long"}
    except Exception as error:
        return {"rejected": f"its parser failed ({type(error).__name__})"}


def _masked(parsed: ParsedText, scanner: SecretScanner) -> ParsedText:
    spans = scanner.scan(parsed.text)
    title = None if parsed.title is None else redact(parsed.title, scanner)
    if not spans:
        return ParsedText(parsed.text, parsed.blocks, title, parsed.pages)
    paths: dict[tuple[str, ...], tuple[str, ...]] = {}
    for block in parsed.blocks:
        if block.heading_path not in paths:
            paths[block.heading_path] = tuple(redact(h, scanner) for h in block.heading_path)
    return ParsedText(
        text=mask(parsed.text, spans),
        blocks=tuple(
            Block(b.kind, b.start, b.end, paths[b.heading_path], b.level, b.page)
            for b in parsed.blocks
        ),
        title=title,
        pages=parsed.pages,
        masked=tuple(MaskedSpan(span.start, span.end, span.rule) for span in spans),
    )


def _limit(memory: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
