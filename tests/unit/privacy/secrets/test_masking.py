from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.privacy.secrets.scanner import SecretScanner
from rag_assets.privacy.secrets.spans import SecretSpan, mask, redact
from tests.unit.privacy.secrets import planted


@st.composite
def texts_with_spans(draw: st.DrawFn) -> tuple[str, list[SecretSpan]]:
    text = draw(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return text, [SecretSpan(a, b, "rule") for a, b in list(pairwise(cuts))[::2]]


@pytest.mark.slow
@given(texts_with_spans())
def test_masking_keeps_offsets_and_masks_all_spans(drawn: tuple[str, list[SecretSpan]]) -> None:
    text, spans = drawn
    result = mask(text, spans)
    assert len(result) == len(text)
    inside = {i for span in spans for i in range(span.start, span.end)}
    for i, (old, new) in enumerate(zip(text, result, strict=True)):
        assert len(new.encode()) == len(old.encode())
        if i not in inside or old in "\r\n":
            assert new == old
        else:
            assert new in "*·█🔒"


@pytest.mark.slow
def test_a_title_a_file_name_and_a_query_are_redacted(scanner: SecretScanner) -> None:
    for text in ["Notes on {}", "keys/{}.md", "files:repo/{}/x.md", "why does {} fail?"]:
        for token in planted.TOKENS.values():
            left = redact(text.format(token), scanner)
            assert token not in left
            assert left.startswith(text.partition("{")[0])
    assert redact("How to rotate a password", scanner) == "How to rotate a password"


def test_a_file_name_that_is_not_utf8_can_be_redacted(scanner: SecretScanner) -> None:
    name = f"caf\udce9-{planted.AWS_ID}.md"
    assert redact(name, scanner) == f"caf\udce9-{'*' * 20}.md"
