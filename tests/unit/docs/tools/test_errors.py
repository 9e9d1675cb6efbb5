"""The reference of error texts."""

from __future__ import annotations

import subprocess
import sys


def test_an_error_that_the_client_has_too_is_described_as_the_server_uses_it() -> None:
    program = (
        "import rag_assets.client.errors; from docs.tools.errors import build_errors_page;"
        "print(build_errors_page())"
    )
    page = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert "and the API as `forbidden` (403)." in page.partition("\n### Forbidden\n")[2][:200]
