"""Master keys, which encrypt the provider keys in the catalog, and the file that holds them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import stat
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.hashing import compute_key
from rag_assets.common.private_files import draft_prefix, rewrite_file, sync_folder
from rag_assets.common.settings import Settings
from rag_assets.storage.installation.markers import Home

VARIABLE = "RAG_ASSETS_MASTER_KEY"
PREVIOUS = "RAG_ASSETS_MASTER_KEY_PREVIOUS"
_KEY_BYTES = 32
_HINT = "it must be 32 random bytes as base64; create one with `openssl rand -base64 32`"


@dataclass(frozen=True, slots=True)
class MasterKey:
    """A master key, which encrypts provider keys; its id reveals no part of the key."""

    id: str
    secret: bytes = field(repr=False)

    @classmethod
    def from_secret(cls, secret: bytes) -> MasterKey:
        """Return the master key with these 32 bytes; its id is derived from them."""
        digest = hmac.new(secret, b"rag-assets: id of a master key", hashlib.sha256)
        return cls(digest.hexdigest()[:16], secret)

    @classmethod
    def random(cls) -> MasterKey:
        """Return a new random master key."""
        return cls.from_secret(os.urandom(_KEY_BYTES))

    @classmethod
    def parse(cls, text: str, where: str) -> MasterKey:
        """Decode a master key from base64; the error names its origin without quoting it."""
        try:
            secret = base64.b64decode(text.strip(), validate=True)
        except (binascii.Error, ValueError):
            secret = b""
        if len(secret) != _KEY_BYTES:
            raise ConfigurationError(f"{where} holds no master key", hint=_HINT)
        return cls.from_secret(secret)

    def text(self) -> str:
        """Return the key in base64, as written to a file."""
        return base64.b64encode(self.secret).decode()


@dataclass(frozen=True, slots=True)
class MasterKeys:
    """The master keys of an installation."""

    present: MasterKey
    """The key that encrypts provider keys."""
    former: tuple[MasterKey, ...] = ()
    """Earlier keys, which still decrypt provider keys until a rotation is complete."""

    def find(self, key_id: str) -> MasterKey | None:
        """Return the key with that id; None if it is missing."""
        return next((key for key in (self.present, *self.former) if key.id == key_id), None)


def read_environment_keys(environ: Mapping[str, str]) -> MasterKeys | None:
    """Return the keys in the environment; None if there are none, so that the file is used."""
    present, previous = environ.get(VARIABLE), environ.get(PREVIOUS)
    if not present:
        if previous:
            raise ConfigurationError(
                f"{PREVIOUS} is set without {VARIABLE}",
                hint=f"set {VARIABLE} to the key that encrypts provider keys from now on",
            )
        return None
    former = (MasterKey.parse(previous, PREVIOUS),) if previous else ()
    return MasterKeys(MasterKey.parse(present, VARIABLE), former)


FILE_VARIABLE = "RAG_ASSETS_MASTER_KEY_FILE"
_HEAD = """\
# rag-assets: encrypts the provider keys that the catalog keeps. Keep a copy in a safe place:
# with it and the database anyone can read the keys; without it nobody can.
"""
_MAX_FILE_BYTES = 65_536


def get_key_file_path(settings: Settings, environ: Mapping[str, str]) -> Path:
    """Return the path of the key file, even if it does not exist yet.

    By default it lies below the user's configuration folder and is named after the installation's
    id, so that the home folder can be moved. A file that an earlier version named after the path of
    the home folder is renamed.
    """
    if settings.master_key_file is not None:
        return settings.master_key_file
    config_home = environ.get("XDG_CONFIG_HOME", "")
    try:
        # Relative paths are ignored: XDG Base Directory Specification 0.8.
        folder = Path(config_home) if Path(config_home).is_absolute() else Path.home() / ".config"
    except RuntimeError:
        raise ConfigurationError(
            "there is no folder for the master key: the user has no home folder",
            hint=f"set {FILE_VARIABLE} to a file, or RAG_ASSETS_MASTER_KEY to a key",
        ) from None
    home, keys = Home(settings), folder / "rag-assets"
    by_path = keys / f"master-{compute_key('installation', str(settings.home))[:12]}.key"
    if home.installation is None:
        return by_path
    path = keys / f"master-{home.installation}.key"
    if _exists(path) or not _exists(by_path):
        return path
    with suppress(OSError):
        os.link(by_path, path)  # Unlike a rename, a link never replaces a file.
        by_path.unlink()
    return path if _exists(path) else by_path


def find_key_file(settings: Settings, environ: Mapping[str, str]) -> Path | None:
    """Return the path of the key file, which no source may contain; None if it is missing."""
    try:
        path = get_key_file_path(settings, environ)
    except ConfigurationError:
        return None
    return path if _exists(path) else None


def _exists(path: Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - Path's raises where it may not look


class KeyFile:
    """The file of master keys; its first line after comments is the current key.

    It must not be in a source, or in a folder with the data that it protects.
    """

    def __init__(self, path: Path, forbidden: Iterable[Path] = ()) -> None:
        self.path = path
        self._forbidden = tuple(forbidden)

    def read(self) -> MasterKeys | None:
        """Return the keys in the file, which only its owner may read; None if there is no file."""
        try:
            # Open without blocking, in case there is a pipe at this path.
            handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._build_error(f"cannot be read: {type(error).__name__}") from None
        try:
            self._require_place()
            self._require_private(os.fstat(handle))
            content = os.read(handle, _MAX_FILE_BYTES)
        finally:
            os.close(handle)
        lines = content.decode("ascii", "replace").splitlines()
        keys = [
            MasterKey.parse(line, f"the master key file {self.path}")
            for line in lines
            if line.strip() and not line.startswith("#")
        ]
        if not keys:
            raise self._build_error("holds no key")
        return MasterKeys(keys[0], tuple(keys[1:]))

    def create(self) -> MasterKeys:
        """Return the keys in the file; create it if missing, with one key for all processes."""
        file_keys = self.read()
        if file_keys is not None:
            return file_keys
        self._require_place()
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary = self._write_draft(MasterKeys(MasterKey.random()))
            try:
                # A link makes the file appear either completely or not at all, and it never
                # replaces another file.
                os.link(temporary, self.path)
            except FileExistsError:
                pass
            finally:
                temporary.unlink()
            sync_folder(self.path.resolve().parent)
        except OSError as error:
            raise self._build_error(f"cannot be written: {type(error).__name__}") from None
        keys = self.read()
        if keys is None:
            raise self._build_error("was removed right after it was created")
        return keys

    def replace(self, keys: MasterKeys) -> None:
        """Write these keys to the file atomically; concurrent callers wait for each other."""
        path = self.path.resolve()  # if it is a link, its target is replaced
        try:
            for abandoned in path.parent.glob(f"{draft_prefix(path)}*"):
                abandoned.unlink()  # left by a rotation that was killed
            rewrite_file(path, _format_content(keys), new_mode=0o600)
        except OSError as error:
            raise self._build_error(f"cannot be written: {type(error).__name__}") from None

    def _write_draft(self, keys: MasterKeys) -> Path:
        # mkstemp opens the file exclusively and readable only by its owner.
        path = self.path.resolve()
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=draft_prefix(path))
        with os.fdopen(handle, "wb") as stream:
            stream.write(_format_content(keys))
            stream.flush()
            os.fsync(stream.fileno())
        return Path(name)

    def _require_place(self) -> None:
        path = self.path.resolve()
        for folder in self._forbidden:
            if path.is_relative_to(folder.resolve()):
                raise self._build_error(
                    f"is in {folder}, which holds data or documents",
                    hint=f"move it elsewhere, and set {FILE_VARIABLE} to its path",
                )

    def _require_private(self, facts: os.stat_result) -> None:
        if not stat.S_ISREG(facts.st_mode):
            raise self._build_error("is not a file")
        if facts.st_mode & 0o077:
            raise self._build_error("can be read by other users", hint=f"chmod 600 {self.path}")

    def _build_error(self, reason: str, hint: str | None = None) -> ConfigurationError:
        return ConfigurationError(
            f"the master key file {self.path} {reason}",
            hint=hint or f"repair it, or set {FILE_VARIABLE} to another file",
        )


def _format_content(keys: MasterKeys) -> bytes:
    lines = "".join(f"{key.text()}\n" for key in (keys.present, *keys.former))
    return (_HEAD + lines).encode("ascii")
