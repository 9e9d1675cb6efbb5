"""Build the handbook's binary documents from their readable sources.

    python -m examples.make_documents            # write them
    python -m examples.make_documents --check    # fail if a committed one differs

The same sources make the same documents. Only where a library's version decides about bytes that
nobody reads, in archives and scanned pictures, `differs` looks at the content instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from examples.building import mail, pdf, scan, sheets, slides, word
from examples.building.archives import members

SOURCES = Path(__file__).resolve().parent / "sources"
HANDBOOK = SOURCES.parent / "handbook"

DOCUMENTS: dict[str, tuple[Callable[..., bytes], tuple[str, ...]]] = {
    "architecture/talks/seventy-seconds-of-planning.pptx": (
        slides.build,
        ("seventy-seconds-of-planning.md",),
    ),
    "operations/depot-operations-manual.pdf": (pdf.build, ("depot-operations-manual.md",)),
    "operations/local-instructions/sligo-paper-mode.pdf": (scan.build, ("sligo-paper-mode.md",)),
    "operations/mail/cork-handheld-update.eml": (
        mail.build,
        ("cork-handheld-update.md", "cork-lost-scans.csv"),
    ),
    "operations/peak-plan-2026.xlsx": (sheets.build, ("peak-plan-2026.yaml",)),
    "operations/service-levels-and-capacity.pdf": (pdf.build, ("service-levels-and-capacity.md",)),
    "policies/courier-location-memo.pdf": (pdf.build, ("courier-location-memo.md",)),
    "policies/supplier-maps-and-geocoding.docx": (word.build, ("supplier-maps-and-geocoding.md",)),
    "policies/works-council-minutes.pdf": (pdf.build, ("works-council-minutes.md",)),
}
"""The function that builds each document, and its sources."""


def built(document: str) -> bytes:
    """Build one of the DOCUMENTS."""
    build, names = DOCUMENTS[document]
    return build(*((SOURCES / name).read_text(encoding="utf-8") for name in names))


def differs(document: str, made: bytes) -> bool:
    """Return whether the committed document differs from the built document."""
    path = HANDBOOK / document
    if not path.is_file():
        return True
    committed = path.read_bytes()
    if path.suffix in {".docx", ".pptx", ".xlsx"}:
        return members(committed) != members(made)
    if DOCUMENTS[document][0] is scan.build:
        return not scan.look_alike(committed, made)
    return committed != made


def main(arguments: list[str]) -> int:
    """Write the documents, or compare them with --check; return the number of differences."""
    differing = 0
    for document in DOCUMENTS:
        made = built(document)
        if "--check" not in arguments:
            (HANDBOOK / document).write_bytes(made)
        elif differs(document, made):
            sys.stderr.write(f"{document} differs from its source: build it again\n")
            differing += 1
    return differing


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
