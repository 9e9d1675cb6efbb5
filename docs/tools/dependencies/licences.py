"""Licences of locked components, and whether they are allowed.

`requirements/licences.toml` is maintained by hand for packages without a comparable declaration;
`python -m docs.tools.dependencies.licences` adds new packages to it, and drops old ones.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageMetadata, PackageNotFoundError, distribution
from typing import Any

from license_expression import ExpressionError, Licensing, get_spdx_licensing

from docs.tools.dependencies.components import ROOT, Component, list_components

FILE = ROOT / "requirements" / "licences.toml"

_UNKNOWN = "UNKNOWN"
_SECTIONS = {"pypi": "python", "maven": "java", "model": "models"}
_SPELLINGS: Mapping[str, str] = {
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache License Version 2.0": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT Licence": "MIT",
    "MIT license": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "PSFL": "PSF-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "3-Clause BSD License": "BSD-3-Clause",
    "BSD 2-Clause License": "BSD-2-Clause",
}


@dataclass(frozen=True, slots=True)
class Licences:
    """The content of `requirements/licences.toml`.

    Attributes:
        allowed: SPDX identifiers that are allowed, including exceptions.
        allowed_in: further allowed identifiers, by section.
        expressions: SPDX expressions by (section, name); a jar's name may be its group alone.
    """

    allowed: frozenset[str]
    allowed_in: Mapping[str, frozenset[str]]
    expressions: Mapping[tuple[str, str], str]

    def section(self, component: Component) -> str:
        """Return the section that a component is listed in."""
        return _SECTIONS[component.ecosystem]

    def licence(self, component: Component) -> str:
        """Return a component's SPDX expression.

        Raises:
            LookupError: the file does not name it.
        """
        section = self.section(component)
        for name in (component.full_name, component.group):
            if (section, name) in self.expressions:
                return self.expressions[section, name]
        raise LookupError(
            f"{component.full_name} is not in {FILE.relative_to(ROOT)}:"
            " `python -m docs.tools.dependencies.licences` adds it"
        )

    def is_allowed(self, expression: str, section: str = "") -> bool:
        """Return whether some choice among an expression's alternatives is allowed entirely."""
        allowed = self.allowed | self.allowed_in.get(section, frozenset())
        try:
            parsed = _get_licensing().parse(expression, validate=True, simple=False)
        except ExpressionError:
            return False
        return _is_fulfilled(parsed, allowed)


def _is_fulfilled(node: object, allowed: frozenset[str]) -> bool:
    licensing = _get_licensing()
    if isinstance(node, licensing.OR):
        return any(_is_fulfilled(one, allowed) for one in node.args)
    if isinstance(node, licensing.AND):
        return all(_is_fulfilled(one, allowed) for one in node.args)
    return str(node) in allowed


@cache
def _get_licensing() -> Licensing:
    """Return the cached licensing: reading the list of licences takes a quarter of a second."""
    return get_spdx_licensing()


def read_licences() -> Licences:
    """Read the recorded licences."""
    content = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return Licences(
        frozenset(content["allowed"]),
        {section: frozenset(names) for section, names in content["allowed_in"].items()},
        {(s, name): text for s in _SECTIONS.values() for name, text in content[s].items()},
    )


def read_declared_licence(name: str) -> str | None:
    """Return an installed package's declared licence as SPDX; None if a person has to decide."""
    try:
        metadata = distribution(name).metadata
    except PackageNotFoundError:
        return None
    return metadata["License-Expression"] or _read_older_fields(metadata)


def _read_older_fields(metadata: PackageMetadata) -> str | None:
    """Return the licence field if it is a known licence and no classifier is more precise."""
    field = _parse_spdx((metadata["License"] or "").strip())
    classified = {
        _parse_spdx(text.rpartition(" :: ")[2])
        for text in metadata.get_all("Classifier") or ()
        if text.startswith("License :: OSI Approved :: ")
    }
    if field is not None:
        own = {str(symbol) for symbol in _get_licensing().license_symbols(field)}
        return field if classified - {None} <= own else None
    return classified.pop() if len(classified) == 1 else None


def _parse_spdx(name: str) -> str | None:
    if name in _SPELLINGS:
        return _SPELLINGS[name]
    try:
        parsed = _get_licensing().parse(name, validate=True)
    except ExpressionError:
        return None
    return str(parsed) if parsed is not None else None


def main() -> int:
    """Update the list of Python packages; a person fills in licences that are not declared."""
    content = tomllib.loads(FILE.read_text(encoding="utf-8"))
    names = sorted({c.name for c in list_components() if c.ecosystem == "pypi"})
    before = content["python"]
    python = {name: before.get(name) or read_declared_licence(name) or _UNKNOWN for name in names}
    FILE.write_text(_format_toml({**content, "python": python}), encoding="utf-8")
    unknown = [name for name, licence in python.items() if licence == _UNKNOWN]
    if unknown:
        sys.stderr.write(f"{FILE.relative_to(ROOT)}: fill in {', '.join(unknown)}\n")
    return int(bool(unknown))


def _format_toml(content: Mapping[str, Any]) -> str:
    lines = ["# Licences of all that is locked, as SPDX expressions. `make audit` compares.", ""]
    lines += ["allowed = [", *(f'    "{name}",' for name in sorted(content["allowed"])), "]"]
    lines += ["", "[allowed_in]"]
    lines += [f"{s} = {json.dumps(names)}" for s, names in sorted(content["allowed_in"].items())]
    for section in _SECTIONS.values():
        table = content[section]
        lines += ["", f"[{section}]"]
        lines += [f'"{name}" = "{table[name]}"' for name in sorted(table)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
