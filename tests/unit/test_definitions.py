from __future__ import annotations

import dagster as dg

from rag_assets.definitions import build_defs


def test_everything_that_the_webserver_and_the_daemon_load_fits_together() -> None:
    dg.Definitions.validate_loadable(build_defs())
