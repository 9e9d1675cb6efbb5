"""The bill of materials: CycloneDX 1.6 as JSON, reproducible byte for byte from the locks.

    python -m docs.tools.dependencies.sbom [file]

It contains no time and no machine; its serial number is derived from its content.
"""

from __future__ import annotations

import json
import sys
import tomllib
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from docs.tools.dependencies.components import ROOT, Component, list_components
from docs.tools.dependencies.licences import Licences, read_licences

DEFAULT = ROOT / ".local" / "sbom.cdx.json"


def build_bill_of_materials() -> str:
    """Return all components with hashes, licences and dependencies, as JSON."""
    components, licences = list_components(), read_licences()
    project = _build_project()
    content: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": project},
        "components": [_build_entry(component, licences) for component in components],
        "dependencies": _build_dependencies(project["bom-ref"], components),
    }
    serial = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(content, sort_keys=True))
    content["serialNumber"] = f"urn:uuid:{serial}"
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def build_purl(component: Component) -> str:
    """Return the package URL; models have no type of their own, so theirs is `generic`."""
    kind = "generic" if component.ecosystem == "model" else component.ecosystem
    group = f"{quote(component.group)}/" if component.group else ""
    return f"pkg:{kind}/{group}{quote(component.name)}@{quote(component.version)}"


def _build_project() -> dict[str, Any]:
    facts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    reference = f"pkg:pypi/{facts['name']}@{facts['version']}"
    return {
        "bom-ref": reference,
        "type": "application",
        "name": facts["name"],
        "version": facts["version"],
        "description": facts["description"],
        "licenses": [{"license": {"id": facts["license"]}}],
        "purl": reference,
    }


def _build_entry(component: Component, licences: Licences) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "bom-ref": build_purl(component),
        "type": "machine-learning-model" if component.ecosystem == "model" else "library",
        "name": component.name,
        "version": component.version,
        "purl": build_purl(component),
        "scope": "excluded" if component.development else "required",
        "licenses": _build_licences(licences.licence(component)),
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in component.sha256],
    }
    return {**entry, "group": component.group} if component.group else entry


def _build_licences(expression: str) -> Sequence[Mapping[str, Any]]:
    if " " in expression:
        return [{"expression": expression}]
    return [{"license": {"id": expression}}]


def _build_dependencies(project: str, components: Sequence[Component]) -> list[dict[str, Any]]:
    """Return the dependencies of each component; jars and models belong to the project."""
    references: dict[str, list[str]] = {}
    for component in components:
        if component.ecosystem == "pypi":
            references.setdefault(component.name, []).append(build_purl(component))
    needs: dict[str, set[str]] = {build_purl(component): set() for component in components}
    needs[project] = set()
    for component in components:
        own = build_purl(component)
        parents = [ref for p in component.parents for ref in references.get(p, ())]
        if len(parents) < len(component.parents) or not parents:
            needs[project].add(own)
        for parent in parents:
            needs[parent].add(own)
    return [{"ref": ref, "dependsOn": sorted(of)} for ref, of in sorted(needs.items())]


def main() -> int:
    """Write the bill of materials to the named file, or below .local."""
    file = Path(sys.argv[1]) if sys.argv[1:] else DEFAULT
    file.parent.mkdir(parents=True, exist_ok=True)
    text = build_bill_of_materials()
    file.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{file}: {len(json.loads(text)['components'])} components\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
