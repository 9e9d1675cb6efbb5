"""Locked dependencies are known, may be used, are listed with their licences, and are audited."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from docs.tools.dependencies.audit import find_licence_complaints, report_advisories
from docs.tools.dependencies.components import LOCK, ROOT, list_components, list_packages
from docs.tools.dependencies.licences import FILE, _format_toml, read_licences
from docs.tools.dependencies.sbom import build_bill_of_materials, build_purl
from rag_assets.common.tokens import ENCODING
from rag_assets.runtime.elasticsearch_install import COMPILER, read_locked_jars

_VALIDATOR = JsonStrictValidator(SchemaVersion.V1_6)


def test_all_that_is_locked_has_an_allowed_licence_and_nothing_else_is_listed() -> None:
    assert list(find_licence_complaints(list_components(), read_licences())) == []


def test_notice_names_models_grammars_and_vendored_files() -> None:
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    names = {c.name for c in list_components() if c.ecosystem == "model"}
    names |= {COMPILER.artifact, COMPILER.group, ENCODING}
    names |= {
        str((file.with_suffix(".yml") if file.stem == "vendor" else file.parent).relative_to(ROOT))
        for file in (ROOT / "rag_assets").rglob("*LICENSE")
    }
    grammars = {c.name for c in list_components() if c.name.startswith("tree-sitter-")}
    assert len(grammars) > 10
    assert "guard.jar" not in notice, "each installation compiles it"
    assert {name for name in names if name not in notice} == set()
    assert {name for name in grammars if name.removeprefix("tree-sitter") not in notice} == set()


def test_a_licence_that_is_missing_forbidden_or_another_is_complained_of() -> None:
    licences = read_licences()
    package = next(c for c in list_components() if c.name == "anyio")
    without = replace(
        licences, expressions={k: v for k, v in licences.expressions.items() if k[1] != "anyio"}
    )
    forbidden = replace(
        licences, expressions={**licences.expressions, ("python", "anyio"): "AGPL-3.0-only"}
    )
    left_over = replace(
        licences, expressions={**licences.expressions, ("python", "no-such-package"): "MIT"}
    )

    def complaints(kept: object) -> str:
        return "\n".join(find_licence_complaints([package], kept))  # type: ignore[arg-type]

    assert "anyio is not in requirements/licences.toml" in complaints(without)
    assert "anyio has AGPL-3.0-only, which is not allowed" in complaints(forbidden)
    assert "anyio declares MIT, licences.toml has AGPL-3.0-only" in complaints(forbidden)
    assert "no-such-package is in requirements/licences.toml" in complaints(left_over)


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("Elastic-2.0 OR AGPL-3.0-only OR SSPL-1.0", True),
        ("MIT AND AGPL-3.0-only", False),
        ("(MIT OR AGPL-3.0-only) AND Zlib", True),
        ("GPL-2.0-only", False),
        ("GPL-2.0-only WITH Classpath-exception-2.0", True),
        ("no such licence", False),
    ],
)
def test_alternatives_and_additions_are_distinguished(expression: str, *, allowed: bool) -> None:
    assert read_licences().is_allowed(expression) is allowed


@pytest.mark.parametrize(("licence", "section"), [("CC-BY-SA-3.0", "models"), ("EPL-2.0", "java")])
def test_a_licence_of_models_or_jars_is_not_allowed_elsewhere(licence: str, section: str) -> None:
    licences = read_licences()
    assert licences.is_allowed(licence, section)
    others = {"", "python", "java", "models"} - {section}
    assert not any(licences.is_allowed(licence, other) for other in others)


def test_updating_the_list_of_licences_keeps_what_it_has() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert _format_toml(tomllib.loads(text)) == text


def test_every_line_of_the_lock_file_is_read() -> None:
    text = LOCK.read_text(encoding="utf-8")
    read_here = [p for p in list_packages() if p.name != "uv"]
    assert len(read_here) == sum("==" in line for line in text.splitlines() if line[:1].isalnum())
    assert sum(len(p.sha256) for p in read_here) == text.count("--hash=sha256:")


def test_packages_for_development_are_those_that_the_project_does_not_need() -> None:
    development = {p.name: p.development for p in list_packages()}
    assert development["pytest"]
    assert development["ruff"]
    assert not development["dagster"]
    assert not development["sqlalchemy"], "needed by dagster and by the project"
    assert not development["certifi"], "needed at several removes"


def test_the_bill_of_materials_is_valid_and_lists_all_that_is_locked() -> None:
    text = build_bill_of_materials()
    assert _VALIDATOR.validate_str(text) is None
    listed = {c["purl"]: c for c in json.loads(text)["components"]}
    assert set(listed) == {build_purl(c) for c in list_components()}
    assert sum(p.startswith("pkg:maven/") for p in listed) == len(read_locked_jars()) + 1
    assert f"pkg:maven/{COMPILER.group}/{COMPILER.artifact}@{COMPILER.version}" in listed
    assert sum(c["type"] == "machine-learning-model" for c in listed.values()) == 3
    assert all(c["licenses"] and c["hashes"] for c in listed.values())
    assert all(PackageURL.from_string(p).version for p in listed)


def test_the_validator_refuses_what_is_no_bill_of_materials() -> None:
    bom = json.loads(build_bill_of_materials())
    bom["components"][0]["type"] = "gadget"
    assert _VALIDATOR.validate_str(json.dumps(bom)) is not None


def test_the_bill_of_materials_has_the_dependencies() -> None:
    bom = json.loads(build_bill_of_materials())
    needs = {entry["ref"]: set(entry["dependsOn"]) for entry in bom["dependencies"]}
    own = needs[bom["metadata"]["component"]["bom-ref"]]

    def of(name: str) -> str:
        return next(build_purl(c) for c in list_components() if c.name == name)

    assert {of("dagster"), of("pytest"), of("lucene-core"), of("all-MiniLM-L6-v2")} <= own
    assert of("aiohappyeyeballs") in needs[of("aiohttp")]
    assert of("aiohappyeyeballs") not in own
    assert set().union(*needs.values()) | {bom["metadata"]["component"]["bom-ref"]} == set(needs)


def test_the_bill_of_materials_is_the_same_everywhere_and_names_no_host(tmp_path: Path) -> None:
    file = tmp_path / "sbom.json"
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-m", "docs.tools.dependencies.sbom", str(file)],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": f"UTC+{seed}"},
            check=True,
            capture_output=True,
        )
        assert file.read_text(encoding="utf-8") == build_bill_of_materials()
    text = file.read_text(encoding="utf-8")
    assert "://" not in text
    assert str(ROOT) not in text
    assert "timestamp" not in text


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    file = tmp_path / "lock.txt"
    digest = "0" * 64
    file.write_text(f"six==1.17.0 --hash=sha256:{digest}\nidna==3.1 --hash=sha256:{digest}\n")
    return file


def _knows_of(request: Request) -> Response:
    asked = json.loads(request.data)
    if asked["package"]["name"] != "idna":
        return Response("{}", content_type="application/json")
    known = {
        "id": "PYSEC-0000-1",
        "summary": "slow",
        "affected": [
            {
                "package": {"name": "idna", "ecosystem": "PyPI"},
                "ranges": [
                    {"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "3.7"}]}
                ],
            }
        ],
    }
    return Response(json.dumps({"vulns": [known]}), content_type="application/json")


def test_known_vulnerabilities_are_reported_with_their_fixes(
    lock: Path, httpserver: HTTPServer, capsys: pytest.CaptureFixture[str]
) -> None:
    httpserver.expect_request("/v1/query").respond_with_handler(_knows_of)
    assert report_advisories([lock], url=httpserver.url_for("/v1/query")) == 1
    told = capsys.readouterr().err
    assert "idna 3.1: PYSEC-0000-1, fixed in 3.7" in told
    assert "2 Python packages checked, 1 known vulnerabilities" in told


def test_the_absence_of_vulnerabilities_is_reported(
    lock: Path, httpserver: HTTPServer, capsys: pytest.CaptureFixture[str]
) -> None:
    httpserver.expect_request("/v1/query").respond_with_json({})
    assert report_advisories([lock], url=httpserver.url_for("/v1/query")) == 0
    assert "2 Python packages checked, 0 known" in capsys.readouterr().err


def test_without_a_network_the_audit_reports_that_nothing_was_checked(
    lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report_advisories([lock], url="http://127.0.0.1:9/v1/query") == 2
    told = capsys.readouterr().err
    assert "error: vulnerabilities could not be requested" in told
    assert "hint: run `make audit` where the network reaches the advisory service" in told
    assert "Traceback" not in told
