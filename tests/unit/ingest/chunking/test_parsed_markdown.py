"""The chunker with the output of the Markdown parser."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.ingest.chunking.kinds import ChunkParameters
from rag_assets.ingest.parsing.markdown import parse_markdown
from tests.chunking import parameters_of, passages_of

from .documents import documents, parameters, wild_texts
from .promises import check_promises, quick, texts


@pytest.mark.slow
@quick
@given(st.one_of(documents().map(lambda parsed: parsed.text), wild_texts), parameters)
def test_parsed_markdown_keeps_every_promise(text: str, chosen: ChunkParameters) -> None:
    check_promises(parse_markdown(text), chosen)


def test_a_markdown_page_by_its_headings() -> None:
    page = """---
title: Front
---
# Guide

Intro.

## Install

```sh
# not a heading
make install
```

Setext
------

| a | b |
|---|---|
| 1 | 2 |
"""
    parsed = parse_markdown(page)
    passages = passages_of(parsed, parameters_of("heading", 32, 8))
    found = list(zip([p.heading_path for p in passages], texts(parsed, passages), strict=True))
    assert "Front" not in "".join(text for _, text in found)
    assert found[0] == (
        ("Guide",),
        "# Guide\n\nIntro.\n\n## Install\n\n```sh\n# not a heading\nmake install\n```",
    )
    assert found[1][0] == ("Guide", "Setext")
    assert found[1][1].startswith("Setext\n------\n\n| a | b |")
