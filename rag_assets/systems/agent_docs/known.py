"""Remembers which programs the user had pages made of, so that no page can name another one."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from rag_assets.common.private_files import write_atomically
from rag_assets.systems.agent_docs.calls import Caller
from rag_assets.systems.agent_docs.help_pages import version_of
from rag_assets.systems.agent_docs.pages import head_of


def remember(programs: Mapping[str, str]) -> None:
    """Remember programs by their names.

    Args:
        programs: the file of each.
    """
    write_atomically(_file(), json.dumps({**known(), **programs}, indent=1, sort_keys=True))


def known() -> dict[str, str]:
    """The remembered programs: the file of each, by name."""
    try:
        found = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


def outdated(files: Iterable[Path]) -> list[str]:
    """Which remembered programs have another version than pages of theirs.

    Args:
        files: of an agent; those that are no pages of ours are left out.
    """
    versions: dict[str, str] = {}
    for head in filter(None, map(head_of, files)):
        versions.setdefault(head[0].split()[0], head[1])
    programs = {name: file for name, file in known().items() if name in versions}
    if not programs:
        return []
    lines = []
    with tempfile.TemporaryDirectory(prefix="rag-assets-help-") as home:
        caller = Caller(Path(home), os.environ)
        for name, file in sorted(programs.items()):
            try:
                installed = version_of(caller, file)
            except OSError:
                continue  # It is not installed any more: its pages are the last there are.
            if installed != versions[name]:
                lines.append(f"{name} is {installed}, its pages are of {versions[name]}")
    return lines


def _file() -> Path:
    given = os.environ.get("XDG_STATE_HOME")
    folder = Path(given) if given else Path.home() / ".local" / "state"
    return folder / "rag-assets" / "agent-docs.json"
