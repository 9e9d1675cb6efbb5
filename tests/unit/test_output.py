"""What a document may not do to a terminal."""

from __future__ import annotations

from rag_assets.commands.output import harmless


def test_escape_sequences_do_not_reach_the_terminal() -> None:
    shown = harmless("a\x1b[2Jb\x9bc\u202ed\te\nf")
    assert "\x1b" not in shown
    assert "\x9b" not in shown
    assert "\u202e" not in shown
    assert shown.endswith("d\te\nf")
