from pathlib import Path

import pytest

from rag_assets.cli.output import print_error, progress, replace_controls, warn
from rag_assets.common.errors import RagAssetsError
from tests.rules import with_rules
from tests.unit.privacy.secrets import planted


def test_escape_sequences_do_not_reach_the_terminal() -> None:
    shown = replace_controls("a\x1b[2Jb\x9bc\u202ed\te\nf")
    assert "\x1b" not in shown
    assert "\x9b" not in shown
    assert "\u202e" not in shown
    assert shown.endswith("d\te\nf")


@pytest.mark.slow
def test_an_error_shows_no_typed_credential(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_rules(tmp_path / ".local" / "cache")
    error = RagAssetsError(f"no tenant {planted.GITHUB!r}", hint=f"see {planted.SLACK}")
    for home in (tmp_path, tmp_path / "none"):
        monkeypatch.setenv("RAG_ASSETS_HOME", str(home))
        for as_json in (False, True):
            print_error(error, as_json=as_json)
        warn(planted.GITHUB)
        progress(planted.GITHUB)
        said = "".join(capsys.readouterr())
        assert said.count("no tenant '***") == 2
        assert planted.GITHUB not in said
        assert planted.SLACK not in said
