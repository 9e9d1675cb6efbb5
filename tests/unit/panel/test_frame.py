"""Vendored files of pages equal the published ones, and load nothing from elsewhere."""

import hashlib
import re
from importlib.resources import files

import rag_assets
from rag_assets.panel.frame import get_asset_path

STATIC = files("rag_assets.panel").joinpath("static")
HTMX_VERSION = "2.0.11"
HTMX_SHA256 = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"
SCRIPT_LINES = 200


def test_htmx_is_the_published_file_with_its_licence() -> None:
    content = STATIC.joinpath("vendor", "htmx.min.js").read_bytes()
    assert hashlib.sha256(content).hexdigest() == HTMX_SHA256
    assert f'version:"{HTMX_VERSION}"' in content.decode()
    licence = STATIC.joinpath("vendor", "htmx.LICENSE").read_text()
    assert licence.startswith("Zero-Clause BSD")


def test_htmx_evaluates_nothing_adds_no_styles_and_asks_no_other_origin() -> None:
    layout = files("rag_assets.panel").joinpath("templates", "layout.html").read_text()
    for setting in (
        '"allowEval": false',
        '"includeIndicatorStyles": false',
        '"selfRequestsOnly": true',
        '"allowScriptTags": false',
    ):
        assert setting in layout


def test_scripts_are_short() -> None:
    scripts = [file for file in STATIC.iterdir() if file.name.endswith(".js")]
    assert {script.name for script in scripts} == {"panel.js", "unsaved.js"}
    for script in scripts:
        assert len(script.read_text().splitlines()) <= SCRIPT_LINES


def test_no_template_or_style_is_inline_or_leads_elsewhere() -> None:
    root = files(rag_assets)
    templates = [
        *root.joinpath("panel", "templates").iterdir(),
        *root.joinpath("systems", "team_guidelines", "panel", "templates").iterdir(),
        *root.joinpath("systems", "workspace", "panel", "templates").iterdir(),
    ]
    assert templates
    for template in templates:
        text = template.read_text()
        assert not re.search(r'\sstyle="|<style|<script(?![^>]*\ssrc=)|\son\w+="', text), template
        assert "//" not in re.sub(r"http://www.w3.org/\S+", "", text), template
    assert "url(" not in STATIC.joinpath("panel.css").read_text()


def test_addresses_of_files_change_with_their_content() -> None:
    digest = hashlib.sha256(STATIC.joinpath("panel.css").read_bytes()).hexdigest()
    assert get_asset_path("panel.css") == f"/panel/assets/{digest[:16]}/panel.css"
