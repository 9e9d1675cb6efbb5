"""The Elasticsearch server's jars: pinned by hash, fetched once, then kept.

`elasticsearch_jars.lock` names every jar with its SHA-256. A folder with all of them is complete
and needs no network. The library jgo downloads the jars once and keeps them in the user's Maven
cache, where other projects can also use them.
"""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.common.private_files import write_atomically
from rag_assets.local_stack.elasticsearch_guard import PLUGIN_CLASS
from rag_assets.local_stack.processes import Progress, exclusive, silent

if TYPE_CHECKING:
    from jgo.maven import MavenContext

ELASTICSEARCH_VERSION = "9.5.3"

_LOCK = Path(__file__).with_name("elasticsearch_jars.lock")
_ROOTS = ("org.elasticsearch:elasticsearch", "org.elasticsearch.plugin:transport-netty4")
_TRANSPORT = "transport-netty4"
TRANSPORT_FOLDER = f"modules/{_TRANSPORT}"
_DESCRIPTOR = "plugin-descriptor.properties"


@dataclass(frozen=True, slots=True)
class Jar:
    """One published jar."""

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
        """Return the folder from which the server loads the jar; the network layer is a module."""
        in_module = self.artifact.startswith(("netty-", _TRANSPORT))
        return f"modules/{_TRANSPORT}" if in_module else "lib"


def locked_jars() -> list[Jar]:
    """Return the jars in the lock file."""
    lines = (line for line in _LOCK.read_text().splitlines() if not line.startswith("#"))
    return [Jar(*line.replace(":", " ").split()) for line in lines]


def install_distribution(home: Path, *, progress: Progress = silent) -> None:
    """Install an Elasticsearch home (lib, modules, plugins); quick if it is already complete.

    Raises:
        ServiceUnavailable: a jar is neither installed nor cached and cannot be fetched, or a
            fetched file differs from the published file.
    """
    missing = [jar for jar in locked_jars() if not (home / jar.folder / jar.file_name).is_file()]
    for folder in ("lib", f"modules/{_TRANSPORT}", "plugins", "native", "config"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    if missing:
        _install(missing, home, progress)
    module = home / "modules" / _TRANSPORT
    _describe(module)


def fetch_jar(jar: Jar) -> Path:
    """Return the path of a jar in the user's Maven cache; download the jar if it is missing.

    Raises:
        ServiceUnavailable: see `install_distribution`.
    """
    context = _repository()
    with _cache_lock(context):
        return _fetch_into_cache(context, jar, lambda: None)


def _install(jars: list[Jar], home: Path, progress: Progress) -> None:
    context = _repository()
    with _cache_lock(context):
        for number, jar in enumerate(jars, start=1):
            line = f"Elasticsearch: fetching jar {number} of {len(jars)}, only for the first start"
            cached = _fetch_into_cache(context, jar, partial(progress, line))
            target = home / jar.folder / jar.file_name
            draft = target.with_suffix(".part")
            shutil.copyfile(cached, draft)
            draft.replace(target)


def _repository() -> MavenContext:
    from jgo.config import GlobalSettings
    from jgo.constants import MAVEN_CENTRAL_URL
    from jgo.maven import MavenContext

    settings = GlobalSettings.load()
    # The Maven repositories that the user configured come first, because this machine may reach
    # only a mirror.
    repositories = {**settings.repositories, "central": MAVEN_CENTRAL_URL}
    return MavenContext(repo_cache=settings.repo_cache, remote_repos=repositories, timeout=60)


def _cache_lock(context: MavenContext) -> AbstractContextManager[None]:
    # jgo writes files of its cache in place, so without a lock another process could read a partial
    # file.
    return exclusive(Path(context.repo_cache) / ".rag-assets.lock")


def _fetch_into_cache(context: MavenContext, jar: Jar, fetching: Callable[[], None]) -> Path:
    artifact = context.project(jar.group, jar.artifact).at_version(jar.version).artifact()
    cached = Path(context.repo_cache) / artifact.component.path_prefix / jar.file_name
    if _is_intact(cached, jar):
        return cached
    fetching()
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
            f"the SHA-256 of {jar.file_name} differs from that of the published file",
            hint="a proxy or mirror between this machine and the Maven repository alters files",
        )
    return cached


def _is_intact(path: Path, jar: Jar) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256


def _describe(module: Path) -> None:
    """Write the descriptor of the module with transport and guard, by which the server finds it."""
    jar = next(jar for jar in locked_jars() if jar.artifact == _TRANSPORT)
    with zipfile.ZipFile(module / jar.file_name) as archive:
        text = archive.read(f"META-INF/es-plugins/{_TRANSPORT}/{_DESCRIPTOR}").decode()
    # The server runs from the class path, without named Java modules.
    kept = [line for line in text.splitlines() if not line.startswith(("modulename", "classname"))]
    wanted = "\n".join([*kept, f"classname={PLUGIN_CLASS}", ""])
    target = module / _DESCRIPTOR
    if not target.is_file() or target.read_text() != wanted:
        write_atomically(target, wanted)


def _lock_lines() -> list[str]:
    """Build the lock file's lines for `ELASTICSEARCH_VERSION` from the Maven repository."""
    import jgo

    endpoint = "+".join(f"{root}:{ELASTICSEARCH_VERSION}" for root in _ROOTS)
    lines = []
    for artifact in jgo.resolve(endpoint):
        digest = hashlib.sha256(artifact.resolve().read_bytes()).hexdigest()
        lines.append(f"{artifact.groupId}:{artifact.artifactId}:{artifact.version} {digest}")
    return [
        f"# Elasticsearch {ELASTICSEARCH_VERSION}: coordinates and SHA-256 of each published jar.",
        "# Made by: python -m rag_assets.local_stack.elasticsearch_jars",
        *sorted(lines),
    ]


if __name__ == "__main__":
    _LOCK.write_text("\n".join(_lock_lines()) + "\n")
