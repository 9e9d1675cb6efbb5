"""Man pages of commands, rendered by the real mandoc and pandoc."""

from __future__ import annotations

import gzip
import os
import shutil
import stat
from pathlib import Path

import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.systems.agent_docs.help_pages import build_man_pages

MAN = r""".TH TOOL 1 2026-01-01 "tool 9"
.SH NAME
tool \- a tool with a hyphen\-ated\-name
.SH OPTIONS
.TP
\fB\-\-very\-long\-option\fR=\fI<path>\fR
Takes a path.
"""
MDOC = """.Dd January 1, 2026
.Dt TOOL-ADD 1
.Os
.Sh NAME
.Nm tool-add
.Nd adds things
.Sh OPTIONS
.Bl -tag -width Ds
.It Fl -all-of-them
Adds all.
.El
"""

RENDERERS = ("mandoc", "pandoc")
needs_renderers = pytest.mark.skipif(
    "RAG_ASSETS_TEST_RENDERERS" not in os.environ and not all(map(shutil.which, RENDERERS)),
    reason="mandoc and pandoc are not installed: make renderers",
)


def machine(folder: Path, *renderers: str, **pages: str) -> dict[str, str]:
    """Return the variables of a machine with a command, its pages, and some renderers."""
    programs, man = folder / "bin", folder / "man" / "man1"
    programs.mkdir()
    man.mkdir(parents=True)
    (programs / "tool").write_text("#!/bin/sh\necho tool 9\n")
    (programs / "tool").chmod(stat.S_IRWXU)
    for name in renderers:
        found = shutil.which(name)
        assert found is not None, f"{name} is not installed"
        (programs / name).symlink_to(found)
    for name, text in pages.items():
        (man / f"{name.replace('_', '-')}.1").write_text(text)
    return {"PATH": str(programs), "MANPATH": str(folder / "man")}


def test_man_pages_need_a_renderer(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="neither mandoc nor pandoc"):
        build_man_pages(["git"], {"PATH": str(tmp_path)}, max_calls=5)


@pytest.mark.slow
@needs_renderers
@pytest.mark.parametrize("renderers", [("mandoc",), RENDERERS])
def test_pages_of_both_forms_have_their_sections_and_exact_names(
    renderers: tuple[str, ...], tmp_path: Path
) -> None:
    variables = machine(tmp_path, *renderers, tool=MAN, tool_add=MDOC, toolbox=MAN)
    found = build_man_pages(["tool"], variables, max_calls=9)
    assert found.warnings == ()
    assert [page.command for page in found.pages] == ["tool", "tool add"]
    assert {page.version for page in found.pages} == {"tool 9"}
    of_man, of_mdoc = (page.text for page in found.pages)
    assert "--very-long-option" in of_man
    assert "hyphen-ated-name" in of_man
    assert "--all-of-them" in of_mdoc
    for text in (of_man, of_mdoc):
        assert "\n## options" in text.lower()
        assert "2026" not in text  # The edges of the page.
        assert not text.startswith("# ")


@pytest.mark.slow
@needs_renderers
def test_a_page_that_no_renderer_reads_is_named_and_left_out(tmp_path: Path) -> None:
    variables = machine(tmp_path, "pandoc", tool=MAN, tool_add=MDOC)
    found = build_man_pages(["tool"], variables, max_calls=9)
    assert [page.command for page in found.pages] == ["tool"]
    assert found.warnings == (
        "tool add: it is written in mdoc, which needs mandoc; it is left out",
    )


@pytest.mark.slow
@needs_renderers
def test_an_empty_page_is_named_and_left_out(tmp_path: Path) -> None:
    found = build_man_pages(["tool"], machine(tmp_path, *RENDERERS, tool=""), max_calls=9)
    assert found.pages == ()
    assert found.warnings == ("tool: pandoc cannot render its page; it is left out",)


@pytest.mark.slow
@needs_renderers
def test_a_page_may_stand_for_another_but_for_none_outside(tmp_path: Path) -> None:
    variables = machine(tmp_path, *RENDERERS, tool=".so man1/other.1\n", tool_x=".so ../secret.1\n")
    packed = gzip.compress(MAN.replace("a tool with", "another tool with").encode())
    (tmp_path / "man" / "man1" / "other.1.gz").write_bytes(packed)
    (tmp_path / "secret.1").write_text(MAN.replace("a tool with", "a secret with"))
    found = build_man_pages(["tool"], variables, max_calls=9)
    texts = [page.text for page in found.pages]
    assert "another tool with" in texts[0]
    assert not any("secret" in text for text in texts)


@pytest.mark.slow
@needs_renderers
def test_calls_are_limited(tmp_path: Path) -> None:
    found = build_man_pages(
        ["tool"], machine(tmp_path, *RENDERERS, tool=MAN, tool_add=MAN), max_calls=2
    )
    assert [page.command for page in found.pages] == ["tool"]
    assert "more than 2 calls" in found.warnings[0]
