"""Write the generated pages, or check that they are up to date.

python -m docs.tools.pages [--check]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from docs.tools.commands import build_commands_page
from docs.tools.configuration import build_configuration_page
from docs.tools.dependencies.page import build_dependencies_page
from docs.tools.errors import build_errors_page
from docs.tools.packages import PAGE as ARCHITECTURE
from docs.tools.packages import build_architecture_page
from docs.tools.performance import PAGE as PERFORMANCE
from docs.tools.performance import build_performance_page
from docs.tools.quality import PAGE as QUALITY
from docs.tools.quality import build_quality_page
from docs.tools.reference import build_reference_page

DOCS = Path(__file__).resolve().parents[1]


def main() -> int:
    """Write pages that differ; with --check, only report them."""
    check = "--check" in sys.argv[1:]
    stale = [
        path
        for path, text in build_pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in stale:
        if check:
            sys.stderr.write(f"docs/{path.relative_to(DOCS)} is out of date: run `make docs`\n")
        else:
            path.write_text(build_pages()[path], encoding="utf-8")
    return int(check and bool(stale))


def build_pages() -> Mapping[Path, str]:
    """Return the text of each generated page, by path."""
    return {
        ARCHITECTURE: build_architecture_page(),
        DOCS / "commands.md": build_commands_page(),
        DOCS / "configuration.md": build_configuration_page(),
        DOCS / "decisions" / "index.md": build_decisions_page(),
        DOCS / "dependencies.md": build_dependencies_page(),
        DOCS / "errors.md": build_errors_page(),
        PERFORMANCE: build_performance_page(),
        QUALITY: build_quality_page(),
        DOCS / "reference.md": build_reference_page(),
    }


def build_decisions_page() -> str:
    """List the decisions, and the former numbers of each."""
    about = (
        "This page is for engineers who change rag-assets, or ask why it works as it does. Each "
        "decision has its context, consequences and rejected alternatives."
    )
    lines = ["# Decisions", "", about, ""]
    former: dict[str, str] = {}
    for path in sorted((DOCS / "decisions").glob("[0-9]*.md")):
        text = path.read_text(encoding="utf-8")
        title = text.partition("\n")[0].removeprefix("# ")
        lines.append(f"- {path.name[:2]} [{title}]({path.name})")
        status = text.partition("**Status.**")[2].partition("\n\n")[0]
        former |= dict.fromkeys(re.findall(r"\d{4}", status), path.name[:2])
    lines += ["", "## Former numbers", ""]
    lines += ["Commits may name a decision by its former number of four digits:", ""]
    lines.append(", ".join(f"{old} → {new}" for old, new in sorted(former.items())))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
