"""Folders and servers of an installation, from environment variables.

| variable | default | meaning |
|---|---|---|
| RAG_ASSETS_HOME | checkout or current folder | holds tenants.yaml and .local |
| DAGSTER_HOME | the installation's own | your Dagster instance, used for runs of commands |
| RAG_ASSETS_DATABASE_URL | embedded Postgres | the catalog and Dagster's storage |
| RAG_ASSETS_OWNER_DATABASE_URL | the catalog's | the same database, as the role that upgrades it |
| RAG_ASSETS_SERVICE_DATABASE_URL | the catalog's | the same, as the role of `rag-assets serve` |
| RAG_ASSETS_DAGSTER_DATABASE_URL | the catalog's | the same, as the role of Dagster's storage |
| RAG_ASSETS_ELASTICSEARCH_URL | an embedded one | comma-separated nodes; may have name:password@ |
| RAG_ASSETS_ELASTICSEARCH_HEAP | 1g | largest Java heap of the embedded Elasticsearch |
| RAG_ASSETS_DAGSTER_PORT | 3000 | of the Dagster UI; the next free one if it is taken |
| RAG_ASSETS_LAKE_URL | .local/lake | folder or object store of the lake |
| RAG_ASSETS_BLOBS_URL | .local/blobs | folder or object store of uploaded files |
| RAG_ASSETS_PGVECTOR_URL | the catalog's | Postgres of tenants that search vectors in pgvector |
| RAG_ASSETS_INDEX_PREFIX | rag | distinguishes installations that share an Elasticsearch |
| RAG_ASSETS_ALLOWED_ROOTS | any; of agents: their base | folders of sources, by os.pathsep |
| RAG_ASSETS_MASTER_KEY | the file's | encrypts stored provider keys: 32 bytes as base64 |
| RAG_ASSETS_MASTER_KEY_PREVIOUS | none | the key before, until `rag-assets keys rotate` is done |
| RAG_ASSETS_MASTER_KEY_FILE | in ~/.config/rag-assets | holds the master key; made at need |
| RAG_ASSETS_FORK_SERVER | used if it runs | 0: each command and run imports for itself |
| RAG_ASSETS_PRIVATE_ENDPOINTS | none | host:port, host or CIDR, by commas; see providers.md |
| RAG_ASSETS_IDENTITY_HOSTS | none | servers that accept its cloud identity; see providers.md |

`DATABASE_URL` and `ELASTICSEARCH_URL`, the former names, are read until the next release where the
new ones are not set; a new one that is set to an empty value hides the former one.
"""

from __future__ import annotations

import codecs
import os
import re
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from rag_assets.common.checkout import is_checkout
from rag_assets.common.elasticsearch_settings import ElasticsearchSettings, split_nodes
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.private_endpoints import PrivateEndpoints

_DATABASE_URL = "RAG_ASSETS_DATABASE_URL"
_ELASTICSEARCH_URL = "RAG_ASSETS_ELASTICSEARCH_URL"
_OWNER_URL = "RAG_ASSETS_OWNER_DATABASE_URL"
_SERVICE_URL = "RAG_ASSETS_SERVICE_DATABASE_URL"
_DAGSTER_URL = "RAG_ASSETS_DAGSTER_DATABASE_URL"
PROJECT_ROOT = Path(__file__).resolve().parents[2]
_LAST_PORT = 65_535
_MAX_PREFIX_CHARACTERS = 24


@dataclass(frozen=True, slots=True)
class Settings:
    """The home folder and the external servers of one installation (None: embedded server)."""

    home: Path
    database_url: str | None = None
    owner_database_url: str | None = None
    service_database_url: str | None = None
    dagster_database_url: str | None = None
    elasticsearch_url: str | None = None
    lake_url: str = ""
    blobs_url: str = ""
    allowed_roots: tuple[Path, ...] = ()
    elasticsearch_heap: str = "1g"
    dagster_port: int = 3000
    index_prefix: str = "rag"
    vectors_url: str | None = None
    master_key_file: Path | None = None
    private_endpoints: PrivateEndpoints = field(default_factory=PrivateEndpoints)
    dagster_home: Path | None = None
    """The folder of a team's own Dagster instance; None: the installation's is used."""
    elasticsearch: ElasticsearchSettings = field(default_factory=ElasticsearchSettings)

    @property
    def local(self) -> Path:
        """Return the folder for the installation's data, logs and process ids."""
        return self.home / ".local"

    @property
    def own_dagster_home(self) -> Path:
        """Return the folder of the installation's own Dagster instance, with its dagster.yaml.

        Outside a checkout it is below `local`. The home folder may be a team's Dagster project, and
        the team's programs would read a dagster.yaml and a workspace.yaml there as their own.
        """
        return _get_own_dagster_home(self.home)

    @property
    def has_own_elasticsearch(self) -> bool:
        """Return whether Elasticsearch is the embedded server."""
        return self.elasticsearch_url is None and self.elasticsearch.cloud_id is None

    @property
    def data_docs(self) -> Path:
        """Return the folder of the expectations check's pages, with one folder per tenant."""
        return self.local / "data_docs"

    @property
    def tenants_file(self) -> Path:
        """Return the path of the operator's list of tenants."""
        return self.home / "tenants.yaml"

    def address_variables(self) -> dict[str, str]:
        """Return the variables that pass the same home and addresses to a child process."""
        addresses = {
            _DATABASE_URL: self.database_url,
            _OWNER_URL: self.owner_database_url,
            _SERVICE_URL: self.service_database_url,
            _DAGSTER_URL: self.dagster_database_url,
            _ELASTICSEARCH_URL: self.elasticsearch_url,
            "RAG_ASSETS_LAKE_URL": self.lake_url,
            "RAG_ASSETS_BLOBS_URL": self.blobs_url,
            "RAG_ASSETS_PGVECTOR_URL": self.vectors_url,
            "DAGSTER_HOME": str(self.dagster_home) if self.dagster_home else None,
        }
        own = {"RAG_ASSETS_HOME": str(self.home), "RAG_ASSETS_INDEX_PREFIX": self.index_prefix}
        set_addresses = {name: address for name, address in addresses.items() if address}
        return own | set_addresses | self.elasticsearch.variables()

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Read the settings from environment variables."""
        _require_names_in_utf8(sys.getfilesystemencoding())
        env = os.environ if environ is None else environ
        home = _expand_user("RAG_ASSETS_HOME", env.get("RAG_ASSETS_HOME") or _find_default_home())
        home = home.resolve()
        # Path.is_dir is not used, because it raises for a folder inside a folder without
        # permission.
        if not os.path.isdir(home) or not os.access(home, os.X_OK):  # noqa: PTH112
            raise ConfigurationError(
                f"RAG_ASSETS_HOME is not a folder that can be opened: {home}",
                hint="create the folder, or unset the variable to use the current folder",
            )
        roots = tuple(
            _require_absolute("RAG_ASSETS_ALLOWED_ROOTS", root).resolve()
            for root in env.get("RAG_ASSETS_ALLOWED_ROOTS", "").split(os.pathsep)
            if root
        )
        key_file = env.get("RAG_ASSETS_MASTER_KEY_FILE")
        return cls(
            home=home,
            database_url=_find_postgres(_DATABASE_URL, env, "DATABASE_URL"),
            owner_database_url=_find_postgres(_OWNER_URL, env),
            service_database_url=_find_postgres(_SERVICE_URL, env),
            dagster_database_url=_find_postgres(_DAGSTER_URL, env),
            elasticsearch_url=_find_elasticsearch(env),
            elasticsearch=ElasticsearchSettings.from_environment(env),
            lake_url=_require_store("RAG_ASSETS_LAKE_URL", env, home / ".local" / "lake"),
            blobs_url=_require_store("RAG_ASSETS_BLOBS_URL", env, home / ".local" / "blobs"),
            allowed_roots=roots,
            elasticsearch_heap=_require_heap(env.get("RAG_ASSETS_ELASTICSEARCH_HEAP") or "1g"),
            index_prefix=_require_prefix(env.get("RAG_ASSETS_INDEX_PREFIX") or "rag"),
            vectors_url=_find_postgres("RAG_ASSETS_PGVECTOR_URL", env),
            dagster_port=_parse_port(env.get("RAG_ASSETS_DAGSTER_PORT") or "3000"),
            master_key_file=_require_absolute("RAG_ASSETS_MASTER_KEY_FILE", key_file)
            if key_file
            else None,
            private_endpoints=PrivateEndpoints.parse(
                env.get("RAG_ASSETS_PRIVATE_ENDPOINTS") or "",
                env.get("RAG_ASSETS_IDENTITY_HOSTS") or "",
            ),
            dagster_home=_find_dagster_home(env, home),
        )


def _find_default_home() -> str:
    """Return the folder of the checkout; if the package is installed, the current folder.

    The root folder and a person's home folder are refused: .local there belongs to all programs.
    """
    if is_checkout(PROJECT_ROOT):
        return str(PROJECT_ROOT)
    current = Path.cwd()
    if current in {Path.home(), Path(current.anchor)}:
        raise ConfigurationError(
            f"the current folder {current} cannot be the folder of an installation",
            hint="run the command in the folder of the installation, or set RAG_ASSETS_HOME to it",
        )
    return str(current)


def _read_renamed(env: Mapping[str, str], name: str, former: str) -> tuple[str, str | None]:
    """Return the name under which a setting was found, and the value (None if not set).

    Other programs use the former name as well. So it is ignored if the new name is set, even to an
    empty value.
    """
    if name in env or not env.get(former):
        return name, env.get(name)
    # Python's default filter shows the warning once per process.
    warnings.warn(
        f"{former} is now called {name}: rename it, or set {name} to an empty value if the"
        " former name is meant for a different program",
        FutureWarning,
        stacklevel=4,
    )
    return former, env[former]


def _get_own_dagster_home(home: Path) -> Path:
    return home if is_checkout(home) else home / ".local" / "dagster"


def _find_dagster_home(env: Mapping[str, str], home: Path) -> Path | None:
    """Return the folder of a team's own Dagster instance; None if there is none.

    The folder is checked when the instance is opened, because most commands do not use it. The
    processes of the installation set DAGSTER_HOME too, together with a storage folder.
    """
    text = env.get("DAGSTER_HOME")
    if not text:
        return None
    folder = Path(os.path.expanduser(text))  # noqa: PTH111 - Path's may raise
    local = folder / ".local" / "dagster" if is_checkout(folder) else folder
    is_ours = env.get("DAGSTER_STORAGE_DIR") == str(local / "storage")
    return None if is_ours or folder.resolve() == _get_own_dagster_home(home) else folder


def _require_names_in_utf8(encoding: str) -> None:
    """Require that file names are read as UTF-8, since ids of documents are derived from them.

    With another encoding, a document whose file name is not ASCII would get another id.
    """
    if codecs.lookup(encoding).name != "utf-8":
        raise ConfigurationError(
            f"the locale of this shell encodes file names in {encoding}, so that documents"
            " would be deleted and added again under different names",
            hint="set LC_ALL=C.UTF-8, or PYTHONUTF8=1",
        )


def _require_prefix(text: str) -> str:
    """Require a valid prefix for the names of indexes, aliases and schemas; return it.

    The shortest limit applies to pgvector's schema names: 63 bytes, of which 27 are for the tenant
    and 12 for the digits of two numbers.
    """
    if len(text) > _MAX_PREFIX_CHARACTERS or not re.fullmatch(r"[a-z0-9]+([._-][a-z0-9]+)*", text):
        raise ConfigurationError(
            f"RAG_ASSETS_INDEX_PREFIX is not valid: {text[:80]!r}",
            hint="use lower-case letters and digits, joined by single . _ or -, as in rag or"
            f" team-a; at most {_MAX_PREFIX_CHARACTERS} characters",
        )
    return text


def _find_postgres(name: str, env: Mapping[str, str], former: str = "") -> str | None:
    name, url = _read_renamed(env, name, former)
    if url and not re.match(r"postgres(ql)?(\+\w+)?://", url):
        raise ConfigurationError(  # not quoted: it may hold a password
            f"{name} is not the address of a Postgres server",
            hint="use the form postgresql://NAME:PASSWORD@HOST:5432/DATABASE",
        )
    return url or None


def _find_elasticsearch(env: Mapping[str, str]) -> str | None:
    name, url = _read_renamed(env, _ELASTICSEARCH_URL, "ELASTICSEARCH_URL")
    if not url:
        return None
    if not all(map(_is_node, split_nodes(url))):
        raise ConfigurationError(  # not quoted: it may hold a password
            f"{name} is not the address of an Elasticsearch server",
            hint="use the form https://NAME:PASSWORD@HOST:9200, or http:// without TLS; separate"
            " several addresses by commas",
        )
    return url


def _is_node(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # its port is not a number, or too large
        return False
    return is_usable and "," not in url.rpartition("@")[2] and not re.search(r"\s", url)


def _require_store(name: str, env: Mapping[str, str], default: Path) -> str:
    """Return an object store's address without its last slash, or the absolute path of a folder."""
    text = (env.get(name) or str(default)).removeprefix("file://")
    if "://" in text:
        if not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/\s]+(/\S*)?", text):
            raise ConfigurationError(
                f"{name} is not the address of an object store",
                hint="use the form s3://BUCKET/PREFIX",
            )
        return text.rstrip("/")
    path = _require_absolute(name, text)
    # As for the home folder: a folder without permission is not an error here.
    if os.path.exists(path) and not os.path.isdir(path):  # noqa: PTH110, PTH112
        raise ConfigurationError(
            f"{name} is not a folder: {path}", hint="set it to a folder, or unset it"
        )
    return str(path)


def _require_absolute(name: str, text: str) -> Path:
    """Require an absolute path, as commands and the daemon run in different folders; return it."""
    path = _expand_user(name, text)
    if not path.is_absolute():
        raise ConfigurationError(
            f"{name} is a relative path: {text}",
            hint="set an absolute path, or a path that begins with ~",
        )
    return path


def _expand_user(name: str, text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ConfigurationError(
            f"{name} refers to the home folder of an unknown user: {text}",
            hint="set an absolute path",
        ) from None


def _require_heap(text: str) -> str:
    if not re.fullmatch(r"[1-9][0-9]*[kKmMgG]", text):
        raise ConfigurationError(
            f"RAG_ASSETS_ELASTICSEARCH_HEAP is not a size: {text}",
            hint="set a number with a unit, for example 512m or 2g",
        )
    return text


def _parse_port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= _LAST_PORT:
        raise ConfigurationError(
            f"RAG_ASSETS_DAGSTER_PORT is not a port: {text}", hint="set a number from 1 to 65535"
        )
    return int(text)
