"""The sizes on the page about installing match the installed packages."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.distributions import find_dependencies

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "installing.md").read_text()
ROW = re.compile(r"^\| `(rag-assets(?:-client)?)(?:\[([\w,]+)\])?` \| (\d+) \| ([\d,]+) \|$", re.M)
OWN = 67
"""Megabytes of rag-assets itself."""


@pytest.mark.slow
def test_page_has_the_packages_and_sizes_of_every_way_to_install() -> None:
    rows = ROW.findall(PAGE)
    assert len(rows) == 6
    for name, extras, packages, megabytes in rows:
        file = ROOT / ("client" if name == "rag-assets-client" else ".") / "pyproject.toml"
        project = tomllib.loads(file.read_text())["project"]
        lists = [project["optional-dependencies"][one] for one in extras.split(",") if one]
        found = find_dependencies(
            *project["dependencies"], *(line for one in lists for line in one)
        )
        size = sum(file.size or 0 for one in found.values() for file in one.files or ()) / 1e6
        expected = float(megabytes.replace(",", "")) - (OWN if name == "rag-assets" else 0)
        assert len(found) + 1 == pytest.approx(int(packages), abs=3), (name, extras)
        assert size == pytest.approx(expected, rel=0.05, abs=1), (name, extras)
