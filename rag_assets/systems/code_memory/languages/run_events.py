"""The text of a run event: an agent's change to a file, or its summary of a whole run.

The first line contains the kind of the event and the file; further lines contain the run and the
action. The summary follows after an empty line.
"""

from __future__ import annotations

import re
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.symbols.model import CodeText, Unit
from rag_assets.systems.code_memory.symbols.nodes import FILE, RUN

MEDIA_TYPE: Final = "text/x-run-event"

_SUMMARY: Final = "final_summary"
_HEADING: Final = re.compile(
    r"(?P<kind>final_summary|file_(?:created|updated|deleted))(?: (?P<path>\S.*))?"
)
_RUN: Final = "run: "
_ACTION: Final = "action: "
_LANGUAGE: Final = "run-event"


def rendered(kind: str, run: str, path: str | None, action: str, summary: str) -> str:
    """Return the text of an event.

    Args:
        kind: file_created, file_updated, file_deleted, final_summary.
        run: its id.
        path: the path of the file within its repository; None for a summary of the run.
        action: what was done to the file, in a few words on one line; "" if absent.
        summary: the summary, in words; "" if absent.
    """
    lines = [f"{kind} {path}" if path else kind, _RUN + run]
    if action:
        lines.append(_ACTION + action)
    above = "\n".join(lines)
    return f"{above}\n\n{summary.strip()}\n" if summary.strip() else f"{above}\n"


def read(text: str) -> CodeText:
    """Return the single unit of an event's text, and its facts."""
    end = len(text.rstrip())
    head = text.partition("\n\n")[0].split("\n")
    heading = _HEADING.fullmatch(head[0])
    run = next((line.removeprefix(_RUN) for line in head[1:] if line.startswith(_RUN)), "")
    if heading is None or not run or (heading["path"] is None) != (heading["kind"] == _SUMMARY):
        unit = Unit(0, end, "rest", alone=False)
        return CodeText((unit,), (), _LANGUAGE, ("it is no event of a run",))
    name = RUN + run
    cuts = tuple(found.end() for found in re.finditer("\n", text[:end]))
    unit = Unit(0, end, "derived", name, heading.group(), cuts=cuts)
    values = {"role": "run", "public": True, "called": [name.lower()]}
    facts = [Fact("declares", 0, heading.end(), name, values)]
    if heading["path"] is not None:
        changed = {"file": FILE + heading["path"], "run": name}
        facts.append(Fact("changed_by", 0, heading.end(), name, changed))
    return CodeText((unit,), tuple(facts), _LANGUAGE)
