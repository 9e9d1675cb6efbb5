"""tenants.yaml: read tenants and the defaults of projects; edit the file and keep its comments.

A parser that keeps comments takes 2 ms per tenant; a C parser takes a third of that. With a
thousand tenants, each command and each fork of a sync of all tenants would spend seconds on an
unchanged file. So the parsed values are cached by the hash of the file's bytes.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.scalarbool import ScalarBoolean

from rag_assets.common.errors import ConfigurationError, RagAssetsError, UnknownTenant
from rag_assets.common.private_files import rewrite_file, write_atomically
from rag_assets.ingest.sources.disk import find_owner_home
from rag_assets.ingest.sources.registry import get_paths_by_field
from rag_assets.plugins.registry import installed_systems
from rag_assets.tenants.kinds import TenantKinds, installed_kinds
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import get_profile
from rag_assets.tenants.projects import list_project_profiles, require_initial_config


@dataclass(frozen=True, slots=True)
class ListedTenants:
    """The current content of a tenant list."""

    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Configuration of each tenant by id, valid and with absolute paths."""
    places: Mapping[str, str] = field(default_factory=dict)
    """By id, where the list declares the tenant, as text for people."""
    problems: tuple[RagAssetsError, ...] = ()
    """Errors in the list; tenants with an error are not in `configs`."""
    kept: frozenset[str] = frozenset()
    """Ids of tenants with an error; their present configuration is kept."""
    complete: bool = True
    """Whether everything could be read; only then does a tenant that is not in the list count as
    removed."""


class TenantList(Protocol):
    """Loads the tenants that the value of one key of tenants.yaml refers to."""

    def __call__(self, written: Any, folder: Path, cache: Path | None) -> ListedTenants:
        """Return the tenants of the list; relative paths in it start at `folder`."""
        ...


_FORMAT = "1"
"""Version of the cached values; increased when the same bytes yield other plain values."""


class ParsedFile:
    """A cache file with the parsed content of another file; only the last content is cached."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, content: bytes, parse: Callable[[bytes], Any]) -> Any:
        """Return the parsed content of a file, from the cache if possible, else from `parse`."""
        digest = hashlib.sha256(_FORMAT.encode() + content).hexdigest()
        cache = self._read_cache()
        if cache.get("sha256") == digest:
            return cache["values"]
        values = parse(content)
        with suppress(OSError):  # A full disk must not prevent searches.
            write_atomically(self._path, json.dumps({"sha256": digest, "values": values}))
        return values

    def _read_cache(self) -> dict[str, Any]:
        try:
            cached = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        return cached if isinstance(cached, dict) and "values" in cached else {}


_KEYS = ("tenants", "projects", "file", "api")
"""Keys that no tenant list can have: keys of the file, and the core's own origins of tenants."""
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_DOLLAR = re.compile(r"\$(\$|[A-Za-z_{])")
_HEADER = """\
# Tenants, their sources and settings: docs/configuration.md explains every field.
# A tenant that is taken out of this list is disabled; `rag-assets tenants remove` deletes it.
tenants: []
"""


class TenantsFile:
    """The tenants.yaml of an installation, which need not exist yet.

    Relative paths of sources refer to its folder. `cache` keeps the parsed content.
    """

    def __init__(
        self, path: Path, kinds: TenantKinds | None = None, *, cache: Path | None = None
    ) -> None:
        self.path = path
        self._kinds = kinds or installed_kinds()
        self._cache = cache
        self._read_last: tuple[bytes, dict[str, Any]] | None = None
        self._is_blank = False
        self._parsed = None if cache is None else ParsedFile(cache / "tenants.json")

    @property
    def is_blank(self) -> bool:
        """Return whether the file, when it was last loaded, was missing or had no content.

        Unlike `tenants: []`, this can be an accident: an unmounted folder, or an interrupted save.
        """
        return self._is_blank

    def load(self) -> dict[str, dict[str, Any]]:
        """Return the validated configuration of every tenant by id, with absolute paths.

        A missing file lists no tenant; see `is_blank`.
        """
        document = self._read_values()
        require_initial_config(_get_project_defaults(document), list_project_profiles())
        tenants: dict[str, dict[str, Any]] = {}
        projects: dict[tuple[str, str | None, str | None], str] = {}
        for number, entry in enumerate(document["tenants"], start=1):
            if not isinstance(entry, Mapping) or not isinstance(entry.get("id"), str):
                raise ConfigurationError(
                    f"{self.path.name}: tenant number {number} has no id",
                    hint="every tenant needs an id of lower-case letters, digits, . _ and -",
                )
            config = self.make_paths_absolute(entry)
            tenant = Tenant.from_config(config, self._kinds)
            if tenant.id in tenants:
                raise ConfigurationError(
                    f"{self.path.name}: tenant {tenant.id!r} is listed twice",
                    hint="remove one of the two entries",
                )
            if get_profile(tenant.profile).requires_project:
                place = (tenant.profile, tenant.organization, tenant.project)
                if (other := projects.setdefault(place, tenant.id)) != tenant.id:
                    raise ConfigurationError(
                        f"{self.path.name}: tenants {other!r} and {tenant.id!r} have the same"
                        " organization and project",
                        hint="change the organization or project of one of them",
                    )
            tenants[tenant.id] = config
        return tenants

    def load_initial_project_config(self) -> dict[str, Any]:
        """Return the initial configuration of projects made over the API, with absolute paths."""
        return self.make_paths_absolute(_get_project_defaults(self._read_values()))

    def load_lists(self) -> dict[str, ListedTenants]:
        """Load the other tenant lists that the file names, by key; an absent one is empty."""
        document = self._read_values()
        parts = installed_systems().parts("tenant_lists")
        return {
            key: part.load()(document[key], self.path.parent, self._cache)
            if document.get(key) is not None
            else ListedTenants()
            for key, part in parts.items()
        }

    def add(self, config: Mapping[str, Any]) -> None:
        """Append a tenant."""
        tenant = Tenant.from_config(self.make_paths_absolute(config), self._kinds)
        with self._edit() as document:
            if any(entry.get("id") == tenant.id for entry in document["tenants"]):
                raise ConfigurationError(
                    f"tenant {tenant.id!r} exists already",
                    hint=f"edit {self.path.name}, or remove the tenant first",
                )
            document["tenants"].append(dict(config))

    def set_enabled(self, tenant_id: str, *, enabled: bool) -> None:
        """Enable or disable a listed tenant; raise UnknownTenant if the file does not list it."""
        with self._edit() as document:
            self._find_entry(document, tenant_id)["enabled"] = enabled

    def remove(self, tenant_id: str) -> None:
        """Remove a tenant from the file; if the file does not list it, do nothing."""
        if all(entry.get("id") != tenant_id for entry in self._read_values()["tenants"]):
            return
        with self._edit() as document:
            document["tenants"] = [e for e in document["tenants"] if e.get("id") != tenant_id]

    def _find_entry(self, document: dict[str, Any], tenant_id: str) -> dict[str, Any]:
        for entry in document["tenants"]:
            if entry.get("id") == tenant_id:
                tenant_entry: dict[str, Any] = entry
                return tenant_entry
        raise UnknownTenant(
            f"{self.path.name} lists no tenant {tenant_id!r}",
            hint="`rag-assets tenants list` shows the tenants",
        )

    def _read_values(self) -> dict[str, Any]:
        """Return the content of the file as plain values, from the cache if it has not changed."""
        content = self._read_content()
        if self._read_last is None or self._read_last[0] != content:
            if self._parsed is None:
                values = _to_plain(self._parse(content))
            else:
                values = self._parsed.get(content, lambda content: _to_plain(self._parse(content)))
            self._is_blank = values is None
            self._read_last = content, self._require_valid(values)
        return self._read_last[1]

    def _read_content(self) -> bytes:
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise self._build_read_error(error) from None

    def _build_read_error(self, error: Exception) -> ConfigurationError:
        return ConfigurationError(
            f"{self.path} cannot be read: {type(error).__name__}",
            hint="check its permissions; it must be UTF-8",
        )

    def _parse(self, content: bytes) -> Any:
        try:
            return _build_yaml().load(content.decode())
        except UnicodeDecodeError as error:
            raise self._build_read_error(error) from None
        except (YAMLError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            where = f", line {mark.line + 1}" if mark else ""
            problem = getattr(error, "problem", None) or "not valid YAML, or nested too deeply"
            raise ConfigurationError(
                f"{self.path}{where}: {problem}", hint="correct the YAML there"
            ) from None

    def _require_valid(self, document: Any) -> dict[str, Any]:
        document = {} if document is None else document
        if not isinstance(document, dict) or not isinstance(document.get("tenants", []), list):
            raise ConfigurationError(
                f"{self.path} must contain a list named tenants", hint="see docs/configuration.md"
            )
        # A list with a misspelled key would count as empty, and all of its tenants would be
        # disabled.
        others = ["projects", *installed_systems().parts("tenant_lists", reserved=_KEYS)]
        if unknown := [str(key) for key in document if key not in {"tenants", *others}]:
            raise ConfigurationError(
                f"{self.path}: unknown field {unknown[0]!r}",
                hint="the file contains a list named tenants, and can contain"
                f" {' and '.join(others)}; see docs/configuration.md",
            )
        if not isinstance(document.get("projects") or {}, Mapping):
            raise ConfigurationError(
                f"{self.path}: projects must be a mapping",
                hint="it contains the initial settings of projects; see docs/configuration.md",
            )
        document.setdefault("tenants", [])
        return document

    @contextmanager
    def _edit(self) -> Iterator[dict[str, Any]]:
        # If the file is a link, its target is edited.
        target = Path(os.path.realpath(self.path))
        try:
            lock = target.with_name(f".{target.name}.lock").open("a")
        except OSError as error:
            raise self._build_write_error(target, error) from None
        with lock:
            # Concurrent commands must not undo each other's edits.
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Comments, order and quotes are kept.
            document = self._require_valid(self._parse(self._read_content() or _HEADER.encode()))
            yield document
            text = io.StringIO()
            _build_yaml().dump(document, text)
            try:
                rewrite_file(target, text.getvalue().encode(), new_mode=0o644)
            except OSError as error:
                raise self._build_write_error(target, error) from None

    def _build_write_error(self, target: Path, error: OSError) -> ConfigurationError:
        leads = "" if target == self.path else f", which leads to {target},"
        return ConfigurationError(
            f"{self.path}{leads} cannot be changed: {error.strerror}; nothing was written",
            hint="change the list where it is managed, or run the command as the file's owner",
        )

    def make_paths_absolute(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return a configuration with the paths of its sources made absolute."""
        sources = config.get("sources")
        if not isinstance(sources, list):
            return dict(config)
        whose = f"tenant {config['id']!r}" if "id" in config else "projects"
        return {**config, "sources": [self._resolve_paths(source, whose) for source in sources]}

    def _resolve_paths(self, source: Any, whose: str) -> Any:
        if not isinstance(source, Mapping):
            return source
        source_text = f"of source {source.get('name')!r} of {whose}"
        paths = {
            field: str(resolve_path(path, self.path.parent, f"{field} {source_text}"))
            for field, path in get_paths_by_field(source, self._kinds.sources).items()
        }
        return {**source, **paths}


def resolve_path(written: str, base: Path, what: str) -> Path:
    """Resolve a path in tenants.yaml, with the same result in every process.

    The path is relative to the base, absolute, or begins with `~`; `$$` stands for a dollar. A
    variable in it is an error.
    """
    if any(match[1] != "$" for match in _DOLLAR.finditer(written)):
        raise ConfigurationError(
            f"tenants.yaml: the {what} contains a variable, whose value can differ between"
            f" processes: {written}",
            hint="write the path without variables; write $$ for a dollar sign in the name of a"
            " folder",
        )
    text = _DOLLAR.sub("$", written)
    if text == "~" or text.startswith("~/"):
        return find_owner_home() / text[2:]
    expanded = os.path.expanduser(text)  # noqa: PTH111 - Path's takes ./~name for a user, too
    if expanded.startswith("~"):
        raise ConfigurationError(
            f"tenants.yaml: the {what} begins with the name of an unknown user: {written}",
            hint="write the path without ~, or put ./ before it if a folder has this name",
        )
    return base / expanded


def format_path(place: Path, base: Path) -> str:
    """Return a path in the notation of resolve_path: relative if it lies below the base."""
    inside = place.is_relative_to(base)
    text = str(place.relative_to(base) if inside else place).replace("$", "$$")
    return f"./{text}" if text.startswith("~") else text


def _get_project_defaults(document: Mapping[str, Any]) -> dict[str, Any]:
    return dict(document.get("projects") or {})


def _build_yaml() -> YAML:
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def _to_plain(value: Any) -> Any:
    """Convert a parsed value to the types of JSON, without comments and line numbers.

    Raises:
        ConfigurationError: a text cannot be stored in Postgres.
    """
    if isinstance(value, Mapping):
        return {_to_plain_text(key): _to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_plain(item) for item in value]
    if isinstance(value, ScalarBoolean):
        return bool(value)
    if isinstance(value, (bool, int, float)) or value is None:
        return value
    return _to_plain_text(value)


def _to_plain_text(value: Any) -> str:
    text = str(value)
    if _UNSTORABLE.search(text):
        # The text is not repeated: it can be a secret.
        raise ConfigurationError(
            "tenants.yaml: a text contains the character U+0000, or half of a surrogate pair",
            hint=r"search the file for \0, \x00, \u0000 and \uD800 to \uDFFF, and remove it",
        )
    return text
