"""Addresses that other machines can reach, over which tokens and documents would be unencrypted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.installation import FAST, Installation
from tests.security.service_process import started

WARNING = "0.0.0.0 can be reached from other machines, and the service does not support TLS"


@pytest.fixture(scope="module")
def installed(shared_installation: Installation) -> Installation:
    shared_installation.add_tenant("acme", **FAST)
    assert shared_installation.command("sync", "acme").code == 0
    assert shared_installation.command("tokens", "create", "acme").code == 0
    return shared_installation


@pytest.mark.parametrize(
    ("host", "cleartext", "warned"),
    [
        ("0.0.0.0", "", True),
        ("0.0.0.0", "warn", True),
        ("0.0.0.0", "allow", False),
        ("127.0.0.1", "refuse", False),
    ],
)
def test_cleartext_outside_loopback_is_warned_of(
    installed: Installation, tmp_path: Path, host: str, cleartext: str, warned: bool
) -> None:
    log = tmp_path / "service.log"
    setting = {"RAG_ASSETS_SERVICE_CLEARTEXT": cleartext}
    with started(installed, log, "--host", host, **setting):
        assert (WARNING in log.read_text()) == warned


def test_cleartext_outside_loopback_is_refused_where_it_is_to_be(installed: Installation) -> None:
    setting = {"RAG_ASSETS_SERVICE_CLEARTEXT": "refuse"}
    refused = installed.command("serve", "--host", "0.0.0.0", **setting)
    assert refused.code == 1
    assert WARNING in refused.err
    unusable = installed.command("serve", RAG_ASSETS_SERVICE_CLEARTEXT="perhaps")
    assert unusable.code == 1
    assert "warn, refuse or allow" in unusable.err
