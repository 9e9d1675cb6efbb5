"""The file that holds the master key where the environment does not."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from rag_assets.billing.master_key import MasterKey, MasterKeys
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.hashing import key_of
from rag_assets.common.settings import Settings

VARIABLE = "RAG_ASSETS_MASTER_KEY_FILE"
_HEAD = """\
# rag-assets: encrypts the provider keys that the catalog keeps. Keep a copy in a safe place:
# whoever has it and the database has the keys; without it nobody can read them again.
"""
_LARGEST_BYTES = 65_536


def key_file_path(settings: Settings, environ: Mapping[str, str]) -> Path:
    """Where the file is, or would be.

    By default below the user's configuration folder, one per installation.

    Raises:
        ConfigurationError: neither a file nor the user's folder is known.
    """
    if settings.master_key_file is not None:
        return settings.master_key_file
    given = environ.get("XDG_CONFIG_HOME", "")
    try:
        # What is not absolute does not count: XDG Base Directory Specification 0.8.
        folder = Path(given) if Path(given).is_absolute() else Path.home() / ".config"
    except RuntimeError:
        raise ConfigurationError(
            "no folder is known that a master key could be kept in",
            hint=f"set {VARIABLE} to a file, or RAG_ASSETS_MASTER_KEY to a key",
        ) from None
    installation = key_of("installation", str(settings.home))[:12]
    return folder / "rag-assets" / f"master-{installation}.key"


def existing_key_file(settings: Settings, environ: Mapping[str, str]) -> Path | None:
    """The file, if there is one: no source may hold it."""
    try:
        path = key_file_path(settings, environ)
    except ConfigurationError:
        return None
    return path if os.path.exists(path) else None  # noqa: PTH110 - Path's raises where it may not look


class KeyFile:
    """Reads, makes and replaces the file; the first line that is no comment is the present key.

    Args:
        path: where it is, or is to be.
        forbidden: folders that it may not lie in: the data that it protects, and what is indexed.
    """

    def __init__(self, path: Path, forbidden: Iterable[Path] = ()) -> None:
        self.path = path
        self._forbidden = tuple(forbidden)

    def read(self) -> MasterKeys | None:
        """The keys in the file; None if there is no file.

        Raises:
            ConfigurationError: it lies where it must not, others may read it, or it holds no key.
        """
        try:
            # Not to wait where somebody put a pipe in its place.
            handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(f"cannot be read: {type(error).__name__}") from None
        try:
            self._require_place()
            self._require_private(os.fstat(handle))
            content = os.read(handle, _LARGEST_BYTES)
        finally:
            os.close(handle)
        lines = content.decode("ascii", "replace").splitlines()
        keys = [
            MasterKey.parse(line, f"the master key file {self.path}")
            for line in lines
            if line.strip() and not line.startswith("#")
        ]
        if not keys:
            raise self._unusable("holds no key")
        return MasterKeys(keys[0], tuple(keys[1:]))

    def make(self) -> MasterKeys:
        """The keys in the file, which is made with a new key if there is none.

        Of several processes at once, all return the key of the one that came first.

        Raises:
            ConfigurationError: as `read`, or it cannot be written.
        """
        found = self.read()
        if found is not None:
            return found
        self._require_place()
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary = self._written(MasterKeys(MasterKey.random()))
            try:
                # A file appears complete or not at all, and never in the place of another.
                os.link(temporary, self.path)
            except FileExistsError:
                pass
            finally:
                temporary.unlink()
            self._sync_folder()
        except OSError as error:
            raise self._unusable(f"cannot be written: {type(error).__name__}") from None
        made = self.read()
        if made is None:
            raise self._unusable("is gone as soon as it is made")
        return made

    def replace(self, keys: MasterKeys) -> None:
        """Put these keys into the file, at one stroke; only while no other process does.

        Raises:
            ConfigurationError: it cannot be written.
        """
        path = self.path.resolve()  # where it is a link, what that leads to is replaced
        try:
            for abandoned in path.parent.glob(f"{_temporary(path)}*"):
                abandoned.unlink()  # by a rotation that was killed
            self._written(keys).replace(path)
            self._sync_folder()
        except OSError as error:
            raise self._unusable(f"cannot be written: {type(error).__name__}") from None

    def _written(self, keys: MasterKeys) -> Path:
        # mkstemp opens exclusively, readable by nobody else.
        path = self.path.resolve()
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=_temporary(path))
        with os.fdopen(handle, "w", encoding="ascii") as stream:
            stream.write(_HEAD)
            stream.writelines(f"{key.text()}\n" for key in (keys.present, *keys.former))
            stream.flush()
            os.fsync(stream.fileno())
        return Path(name)

    def _sync_folder(self) -> None:
        handle = os.open(self.path.resolve().parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def _require_place(self) -> None:
        path = self.path.resolve()
        for folder in self._forbidden:
            if path.is_relative_to(folder.resolve()):
                raise self._unusable(
                    f"lies in {folder}, which holds data or documents",
                    hint=f"move it elsewhere, and name its place in {VARIABLE}",
                )

    def _require_private(self, facts: os.stat_result) -> None:
        if not stat.S_ISREG(facts.st_mode):
            raise self._unusable("is not a file")
        if facts.st_mode & 0o077:
            raise self._unusable(
                "may be read by others than its owner", hint=f"chmod 600 {self.path}"
            )

    def _unusable(self, why: str, hint: str | None = None) -> ConfigurationError:
        return ConfigurationError(
            f"the master key file {self.path} {why}",
            hint=hint or f"mend that, or name another file in {VARIABLE}",
        )


def _temporary(path: Path) -> str:
    return f".{path.name}-"
