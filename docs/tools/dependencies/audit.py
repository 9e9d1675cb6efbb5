"""`make audit`: licences, the bill of materials, and known vulnerabilities of locked components.

    python -m docs.tools.dependencies.audit

Licences and the bill of materials need no network. Vulnerabilities are requested from pip-audit's
service, or from a service with OSV's protocol at ADVISORY_URL: no published package has a complete,
current and licensed database of them (decision 35).

Exit status: 0 nothing found; 1 something found; 2 vulnerabilities could not be requested.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from docs.tools.dependencies.components import BOOTSTRAP, LOCK, ROOT, Component, list_components
from docs.tools.dependencies.licences import FILE, Licences, read_declared_licence, read_licences
from docs.tools.dependencies.sbom import DEFAULT, build_bill_of_materials

_FOUND = 1
_NO_ANSWER = 2
_SECONDS = 15 * 60


def main() -> int:
    """Audit the lock files, and report all faults."""
    locked = list_components()
    complaints = [*find_licence_complaints(locked, read_licences())]
    DEFAULT.parent.mkdir(parents=True, exist_ok=True)
    DEFAULT.write_text(build_bill_of_materials(), encoding="utf-8")
    _print_line(f"{len(locked)} locked components; bill of materials: {DEFAULT.relative_to(ROOT)}")
    for complaint in complaints:
        _print_line(f"licence: {complaint}")
    status = report_advisories([LOCK, BOOTSTRAP], url=os.environ.get("ADVISORY_URL"))
    return status or (_FOUND if complaints else 0)


def find_licence_complaints(locked: Sequence[Component], licences: Licences) -> Iterator[str]:
    """Yield a complaint for each missing, disallowed or misrecorded licence."""
    for component in locked:
        try:
            licence = licences.licence(component)
        except LookupError as error:
            yield str(error)
            continue
        if not licences.is_allowed(licence, licences.section(component)):
            yield f"{component.full_name} has {licence}, which is not allowed"
        own = read_declared_licence(component.name) if component.ecosystem == "pypi" else None
        if own is not None and own != licence:
            yield f"{component.full_name} declares {own}, {FILE.name} has {licence}"
    names = {component.name for component in locked if component.ecosystem == "pypi"}
    for section, name in licences.expressions:
        if section == "python" and name not in names:
            yield f"{name} is in {FILE.relative_to(ROOT)} and not locked"


def report_advisories(locks: Sequence[Path], *, url: str | None = None) -> int:
    """Request known vulnerabilities of the packages in lock files, and report them.

    Args:
        locks: requirements files with hashes.
        url: address of a service with OSV's protocol; None uses pip-audit's own.

    Returns:
        The exit status.
    """
    with TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes"]
        command += ["--progress-spinner=off", "--format=json", f"--output={answer}"]
        command += [f"--requirement={lock}" for lock in locks]
        command += ["--vulnerability-service=osv", f"--osv-url={url}"] if url else []
        try:
            ended = subprocess.run(  # noqa: S603
                command, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return _report_failure(f"no answer in {_SECONDS} s")
        if not answer.exists():
            return _report_failure(ended.stderr.strip().rpartition("\n")[2][:300])
        packages: list[dict[str, Any]] = json.loads(answer.read_text())["dependencies"]
    return _report_packages(packages)


def _report_packages(packages: Sequence[dict[str, Any]]) -> int:
    skipped = [package for package in packages if "skip_reason" in package]
    if skipped:
        names = ", ".join(package["name"] for package in skipped)
        return _report_failure(f"the service knows nothing of {names}")
    count = 0
    for package in packages:
        for known in package["vulns"]:
            count += 1
            fixed = ", ".join(known["fix_versions"]) or "no version"
            _print_line(f"{package['name']} {package['version']}: {known['id']}, fixed in {fixed}")
    _print_line(f"{len(packages)} Python packages checked, {count} known vulnerabilities")
    return _FOUND if count else 0


def _report_failure(reason: str) -> int:
    _print_line(f"error: vulnerabilities could not be requested: {reason}")
    _print_line(
        "hint: run `make audit` where the network reaches the advisory service, or set"
        " ADVISORY_URL to a mirror that answers as OSV does; without either, give"
        f" {DEFAULT.relative_to(ROOT)} to a scanner with a database of its own."
    )
    return _NO_ANSWER


def _print_line(line: str) -> None:
    sys.stderr.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
