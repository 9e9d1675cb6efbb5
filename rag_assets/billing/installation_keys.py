"""The master keys of an installation: in the environment, or else in a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rag_assets.billing.key_file import KeyFile, key_file_path
from rag_assets.billing.key_owners import describe_owner, remove_command
from rag_assets.billing.master_key import (
    PREVIOUS,
    VARIABLE,
    MasterKey,
    MasterKeys,
    keys_of_environment,
)
from rag_assets.common.errors import KeyUnreadable
from rag_assets.common.settings import Settings
from rag_assets.ingest.sources.registry import get_path_fields
from rag_assets.storage.catalog.accounts.provider_keys import StoredKey
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.lake.location import Location
from rag_assets.tenants.kinds import installed_kinds


class InstallationKeys:
    """The master keys of one installation.

    Args:
        catalog: provides the folders of tenants' sources, which must not contain the file.
        settings: provide the path of the file.
        environ: may provide master keys, which are then used instead of the file.
    """

    def __init__(self, catalog: Catalog, settings: Settings, environ: Mapping[str, str]) -> None:
        self._catalog = catalog
        self._settings = settings
        self._environ = environ

    def read(self) -> MasterKeys | None:
        """Return the master keys; None if there are none yet.

        Raises:
            ConfigurationError: a variable or the file cannot be used.
        """
        return self.of_environment() or self._file().read()

    def of_environment(self) -> MasterKeys | None:
        """Return the master keys in the environment; None if the file is used.

        Raises:
            ConfigurationError: a variable does not hold a key.
        """
        return keys_of_environment(self._environ)

    def writable_file(self) -> KeyFile:
        """Return the file; it must not lie in a source, the lake or the installation's state."""
        return self._file(self._source_folders())

    def find(self, key: StoredKey, keys: MasterKeys | None) -> MasterKey:
        """Return the master key that encrypts a stored key.

        Args:
            key: the stored key to decrypt.
            keys: the master keys, as read; None if there are none.

        Raises:
            KeyUnreadable: the master key is not among them.
        """
        found = keys.find(key.sealed.master_key_id) if keys else None
        if found is None:
            raise KeyUnreadable(
                f"the stored key of {describe_owner(key.owner)} for {key.provider} was encrypted"
                f" with the master key {key.sealed.master_key_id}, which is unavailable",
                hint=f"restore {self._key_location()}, or set RAG_ASSETS_MASTER_KEY_FILE to its"
                f" file; if it is lost, run `{remove_command(key.owner, key.provider)}` and"
                " set the key again",
            )
        return found

    def _file(self, folders: Iterable[Path] = ()) -> KeyFile:
        lake = Location.parse(self._settings.lake_url).url if self._settings.lake_url else ""
        data = [Path(lake)] if lake.startswith("/") else []
        path = key_file_path(self._settings, self._environ)
        return KeyFile(path, (self._settings.local, *data, *folders))

    def _source_folders(self) -> Iterator[Path]:
        """Yield the folders of all tenants' sources, which must not contain the file."""
        kinds = installed_kinds().sources
        for record in self._catalog.tenants.all():
            for source in record.config.get("sources", ()):
                for path in get_path_fields(source, kinds).values():
                    yield self._settings.home / path

    def _key_location(self) -> str:
        if self._environ.get(VARIABLE):
            return f"the master key in {PREVIOUS}"
        return str(key_file_path(self._settings, self._environ))
