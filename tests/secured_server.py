"""A real Elasticsearch with its security, whose accounts have the roles that a test defines.

The security module comes as published jars, like the server. Types of SAML, which its classes only
refer to, are replaced with empty ones. The analyzers' module is missing, so the server cannot store
API keys, and accounts are in files. Tests of API keys put a gateway in front of it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from elasticsearch import ConnectionError as NotConnected
from elasticsearch import Elasticsearch

from rag_assets.runtime import elasticsearch_node as node
from rag_assets.runtime.elasticsearch_install import (
    ELASTICSEARCH_VERSION,
    TRANSPORT_FOLDER,
    Jar,
    fetch_jar,
    install_distribution,
)
from rag_assets.runtime.net import LOOPBACK, find_free_port

PASSWORD: Final = "password-of-the-test"
_LOCK: Final = Path(__file__).with_name("secured_server.lock")
_START_SECONDS: Final = 600
_OF_SECURITY: Final = ("nimbus", "oauth2", "x-pack-security")
_SAML_TYPES: Final = (
    "org/opensaml/saml/saml2/core/StatusResponseType",
    "org/opensaml/saml/saml2/core/RequestAbstractType",
    "org/opensaml/core/xml/XMLObject",
)
_SETTINGS: Final = {
    "xpack.security.enabled": "true",
    "xpack.security.transport.ssl.enabled": "false",
    "xpack.security.http.ssl.enabled": "false",
    "xpack.security.authc.realms.file.accounts.order": "0",
    "xpack.license.self_generated.type": "basic",
    "transport.port": "0",
}


@dataclass(frozen=True, slots=True)
class SecuredServer:
    """A running server."""

    port: int

    def url(self, role: str) -> str:
        """Return the server's address with the account of a role."""
        return f"http://{role}:{PASSWORD}@{LOOPBACK}:{self.port}"


@contextmanager
def secured_server(
    directory: Path, roles: Mapping[str, Mapping[str, Any]]
) -> Iterator[SecuredServer]:
    """Start a server with an account for each role, and the superuser `admin`."""
    home, port = directory / "home", find_free_port()
    _install(home)
    # JSON is valid YAML.
    lines = [f"{name}: {json.dumps(role)}\n" for name, role in roles.items()]
    (home / "config" / "roles.yml").write_text("".join(lines))
    accounts = {"admin": "superuser", **{name: name for name in roles}}
    users = "".join(f"{name}:{PASSWORD}\n" for name in accounts)
    (home / "config" / "users").write_text(users)
    members = "".join(f"{role}:{name}\n" for name, role in accounts.items())
    (home / "config" / "users_roles").write_text(members)
    command = [sys.executable, "-m", "tests.secured_server", "--home", home, "--port", str(port)]
    with (directory / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        server = SecuredServer(port)
        _await(server, process, directory / "server.log")
        yield server
    finally:
        process.terminate()
        process.wait(60)


def _await(server: SecuredServer, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    with Elasticsearch(server.url("admin"), max_retries=0) as client:
        while time.monotonic() < deadline:
            assert process.poll() is None, log.read_text()[-3000:]
            try:
                client.cluster.health(wait_for_status="yellow")
            except NotConnected:
                time.sleep(0.5)
            else:
                return
    raise AssertionError(log.read_text()[-3000:])


def _install(home: Path) -> None:
    install_distribution(home)
    transport = home / TRANSPORT_FOLDER
    core, security = home / "modules" / "x-pack-core", home / "modules" / "x-pack-security"
    for folder in (core, security, home / "logs"):
        folder.mkdir(parents=True, exist_ok=True)
    lines = [line for line in _LOCK.read_text().splitlines() if not line.startswith("#")]
    for jar in (Jar(*line.replace(":", " ").split()) for line in lines):
        folder = security if jar.artifact.startswith(_OF_SECURITY) else core
        shutil.copy(fetch_jar(jar), folder / jar.file_name)
    for jar_file in transport.glob("*.jar"):
        shutil.copy(jar_file, security)
    with zipfile.ZipFile(security / "saml-types.jar", "w") as types:
        for name in _SAML_TYPES:
            types.writestr(f"{name}.class", _empty_interface(name))
    for folder, name in (
        (transport, "transport-netty4"),
        (core, core.name),
        (security, security.name),
    ):
        _describe(folder, name)


def _describe(folder: Path, name: str) -> None:
    with zipfile.ZipFile(folder / f"{name}-{ELASTICSEARCH_VERSION}.jar") as jar:
        text = jar.read(f"META-INF/es-plugins/{name}/plugin-descriptor.properties").decode()
    # The server runs from the class path, without named Java modules.
    kept = [line for line in text.splitlines() if not line.startswith("modulename")]
    (folder / "plugin-descriptor.properties").write_text("\n".join([*kept, ""]))


def _empty_interface(name: str) -> bytes:
    """Return the class file of a Java interface without members."""

    def text(value: str) -> bytes:
        return b"\x01" + struct.pack(">H", len(value)) + value.encode()

    def reference(number: int) -> bytes:
        return b"\x07" + struct.pack(">H", number)

    constants = text(name) + reference(1) + text("java/lang/Object") + reference(3)
    head = struct.pack(">IHHH", 0xCAFEBABE, 0, 52, 5)
    return head + constants + struct.pack(">HHHHHHH", 0x0601, 2, 4, 0, 0, 0, 0)


def main() -> None:
    """Run the server until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    arguments = parser.parse_args()
    import jpype

    java, home = node.find_java(os.environ), arguments.home
    (home / "config" / "log4j2.properties").write_text(node._LOGGING)
    jpype.startJVM(
        str(java.library),
        *node.build_jvm_options(java, home=home, heap="512m"),
        classpath=[str(jar) for jar in sorted((home / "lib").glob("*.jar"))],
        convertStrings=False,
    )
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    settings = node.build_node_settings(home, home / "data", arguments.port)
    started = node.start_node(home, settings | _SETTINGS)
    stopped.wait()
    started.close()


if __name__ == "__main__":
    main()
