"""The page docs/dependencies.md: every locked component, its version and its licence."""

from __future__ import annotations

from collections.abc import Sequence

from docs.tools.dependencies.components import Component, components
from docs.tools.dependencies.licences import Licences, read

_INTRODUCTION = """# Dependencies and licences

What is locked, and under which licence it comes, as an SPDX expression. Made by `make docs` from
`requirements/lock.txt`, `requirements/bootstrap.txt`, `requirements/licences.toml` and
`rag_assets/runtime/elasticsearch_jars.lock`; [Security](security.md#dependencies) has their
updates. Packages for development are used by tests, checks and benchmarks alone. What a wheel
bundles (a JDK, Postgres, PDFium, Tesseract) comes under licences of its own, which the wheel
carries along. `NOTICE` names every model, grammar and data file.

Elasticsearch's jars are downloaded by each installation, not shipped. Their licence allows use on
your own machines; it does not allow offering Elasticsearch to others as a hosted or managed
service.

Allowed are {allowed}{allowed_in}. Where there are alternatives, one of them has to be.
"""


def dependencies_page() -> str:
    """The page's text."""
    found, licences = components(), read()
    allowed = ", ".join(f"`{name}`" for name in sorted(licences.allowed))
    allowed_in = "".join(
        f"; in section `{section}`, {', '.join(f'`{name}`' for name in sorted(names))}"
        for section, names in sorted(licences.allowed_in.items())
    )
    python = [c for c in found if c.ecosystem == "pypi"]
    parts = [
        _INTRODUCTION.format(allowed=allowed, allowed_in=allowed_in),
        "\n## Python packages that run\n\n",
        _table([c for c in python if not c.development], licences),
        "\n## Python packages for development\n\n",
        _table([c for c in python if c.development], licences),
        "\n## Jars of the embedded Elasticsearch, and the compiler of its guard\n\n",
        _table([c for c in found if c.ecosystem == "maven"], licences),
        "\n## Models that are shipped, or that a package carries\n\n",
        _table([c for c in found if c.ecosystem == "model"], licences),
    ]
    return "".join(parts)


def _table(rows: Sequence[Component], licences: Licences) -> str:
    lines = ["| name | version | licence |", "|---|---|---|"]
    lines += [f"| {c.full_name} | {c.version} | {licences.licence(c)} |" for c in rows]
    return "\n".join(lines) + "\n"
