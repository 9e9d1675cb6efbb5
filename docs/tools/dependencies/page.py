"""The page docs/dependencies.md: every locked component, its version and its licence."""

from __future__ import annotations

from collections.abc import Sequence

from docs.tools.dependencies.components import Component, list_components
from docs.tools.dependencies.licences import Licences, read_licences

_INTRODUCTION = """# Dependencies and licences

This page is for people who review licences. It lists every locked package with its licence, as an
SPDX expression. `make docs` writes it from `requirements/lock.txt`, `requirements/bootstrap.txt`,
`requirements/licences.toml` and `rag_assets/runtime/elasticsearch_jars.lock`.
[Security](security.md#dependencies) describes how packages are updated.

- **Packages for development** are used only by tests, checks and benchmarks.
- **Contents of wheels**: what a wheel bundles (a JDK, Postgres, PDFium, Tesseract) has its own
  licences, which are in the wheel.
- **Models, grammars and data files** are named in `NOTICE`.
- **Elasticsearch's jars** are downloaded by each installation, not shipped. Their licence allows
  use on your own machines. It does not allow offering Elasticsearch to others as a hosted or
  managed service.

Allowed are {allowed}{allowed_in}. Of alternative licences, one must be allowed.
"""


def build_dependencies_page() -> str:
    """Return the page's text."""
    components, licences = list_components(), read_licences()
    allowed = ", ".join(f"`{name}`" for name in sorted(licences.allowed))
    allowed_in = "".join(
        f"; in section `{section}`, {', '.join(f'`{name}`' for name in sorted(names))}"
        for section, names in sorted(licences.allowed_in.items())
    )
    python = [c for c in components if c.ecosystem == "pypi"]
    parts = [
        _INTRODUCTION.format(allowed=allowed, allowed_in=allowed_in),
        "\n## Python packages that run\n\n",
        _build_table([c for c in python if not c.development], licences),
        "\n## Python packages for development\n\n",
        _build_table([c for c in python if c.development], licences),
        "\n## Jars of the embedded Elasticsearch, and the compiler of its guard\n\n",
        _build_table([c for c in components if c.ecosystem == "maven"], licences),
        "\n## Models that are shipped, or that a package carries\n\n",
        _build_table([c for c in components if c.ecosystem == "model"], licences),
    ]
    return "".join(parts)


def _build_table(rows: Sequence[Component], licences: Licences) -> str:
    lines = ["| name | version | licence |", "|---|---|---|"]
    lines += [f"| {c.full_name} | {c.version} | {licences.licence(c)} |" for c in rows]
    return "\n".join(lines) + "\n"
