"""Connection to an external Elasticsearch, and the layout of new indexes.

| variable | default | meaning |
|---|---|---|
| RAG_ASSETS_ELASTICSEARCH_CLOUD_ID | none | Elastic Cloud, in place of a URL |
| RAG_ASSETS_ELASTICSEARCH_API_KEY | none | encoded API key, may be sealed |
| RAG_ASSETS_ELASTICSEARCH_API_KEY_FILE | none | file with the API key, may be sealed |
| RAG_ASSETS_ELASTICSEARCH_USERNAME | none | user name of an account, in place of an API key |
| RAG_ASSETS_ELASTICSEARCH_PASSWORD | none | password of that account, may be sealed |
| RAG_ASSETS_ELASTICSEARCH_PASSWORD_FILE | none | file with the password, may be sealed |
| RAG_ASSETS_ELASTICSEARCH_CA_FILE | the system's | PEM; verifies the server's certificate |
| RAG_ASSETS_ELASTICSEARCH_FINGERPRINT | none | SHA-256 of a certificate of the server's chain |
| RAG_ASSETS_ELASTICSEARCH_SHARDS | 1 | primary shards of a new shared index |
| RAG_ASSETS_ELASTICSEARCH_REPLICAS | one on a second node | copies of a new index |
| RAG_ASSETS_ELASTICSEARCH_REFRESH_INTERVAL | 30s | of a new index; -1: never; Serverless: from 5s |
| RAG_ASSETS_ELASTICSEARCH_TIER | the cluster's | of a new index, as in data_hot |
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final

from rag_assets.common.errors import ConfigurationError

_PREFIX: Final = "RAG_ASSETS_ELASTICSEARCH_"
_MAX_SHARDS: Final = 1024
_MAX_REPLICAS: Final = 100
_FINGERPRINT: Final = re.compile(r"(?:[0-9a-f]{2}:?){31}[0-9a-f]{2}", re.IGNORECASE)
_INTERVAL: Final = re.compile(r"-1|[1-9][0-9]*(?:ms|s|m|h)")
_SECONDS_OF_UNIT: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
_BETWEEN_NODES: Final = re.compile(r",(?=\s*https?://)")
ACCOUNT_VARIABLES: Final = tuple(
    _PREFIX + name for name in ("API_KEY", "API_KEY_FILE", "USERNAME", "PASSWORD", "PASSWORD_FILE")
)
CERTIFICATE_VARIABLES: Final = (_PREFIX + "CA_FILE", _PREFIX + "FINGERPRINT")
_TIERS: Final = re.compile(r"data_[a-z]+(?:,data_[a-z]+)*")


@dataclass(frozen=True, slots=True)
class IndexLayout:
    """The distribution of a new index over nodes; existing indexes keep their layout."""

    shards: int = 1
    """Primary shards of a shared index. All entries of a tenant lie in one shard, so an index of
    one tenant always has a single shard."""
    replicas: int | None = None
    """Copies of each shard; None: one as soon as there is a second node."""
    refresh_interval: str = "30s"
    tier: str | None = None
    """Tiers of data nodes in order of preference; None: the cluster's default."""

    @property
    def refresh_seconds(self) -> float:
        """Return the interval of automatic refreshes in seconds; negative if there are none."""
        number = float(self.refresh_interval.rstrip("msh"))
        return number * _SECONDS_OF_UNIT.get(self.refresh_interval.lstrip("-0123456789"), 1)


@dataclass(frozen=True, slots=True)
class ElasticsearchSettings:
    """The settings of an external Elasticsearch, as configured; its address is not included.

    Secrets may be sealed; `rag_assets.runtime.elasticsearch_access` opens them and connects.

    Attributes:
        api_key, password: the values as given; they may be sealed.
        api_key_file, password_file: files that contain these values instead.
        ca_file: certificates that verify the server's certificate.
        fingerprint: SHA-256 of the server's certificate, or of an authority that signed it.
    """

    cloud_id: str | None = None
    api_key: str | None = field(default=None, repr=False)
    api_key_file: Path | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    password_file: Path | None = None
    ca_file: Path | None = None
    fingerprint: str | None = None
    layout: IndexLayout = field(default_factory=IndexLayout)

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> ElasticsearchSettings:
        """Read the settings from environment variables."""
        settings = cls(
            cloud_id=_read_matching(
                env, "CLOUD_ID", re.compile(r"[^:\s]*:[\w+/=-]+"), "NAME:BASE64"
            ),
            api_key=_read_text(env, "API_KEY"),
            api_key_file=_read_file_path(env, "API_KEY_FILE"),
            username=_read_text(env, "USERNAME"),
            password=_read_text(env, "PASSWORD"),
            password_file=_read_file_path(env, "PASSWORD_FILE"),
            ca_file=_read_file_path(env, "CA_FILE"),
            fingerprint=_read_matching(
                env, "FINGERPRINT", _FINGERPRINT, "64 hexadecimal digits, with or without colons"
            ),
            layout=IndexLayout(
                shards=_read_number(env, "SHARDS", 1, _MAX_SHARDS) or 1,
                replicas=_read_number(env, "REPLICAS", 0, _MAX_REPLICAS),
                refresh_interval=_read_matching(
                    env, "REFRESH_INTERVAL", _INTERVAL, "a number and a unit, as in 30s, or -1"
                )
                or "30s",
                tier=_read_matching(env, "TIER", _TIERS, "data_hot, or data_warm,data_hot"),
            ),
        )
        settings._require_one_account()
        return settings

    def variables(self) -> dict[str, str]:
        """Return the environment variables that pass the same settings to a child process."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        layout = {
            field.name: value
            for field in fields(self.layout)
            if (value := getattr(self.layout, field.name)) != field.default
        }
        del own["layout"]
        return {
            _PREFIX + name.upper(): str(value)
            for name, value in (own | layout).items()
            if value is not None
        }

    def account_variables(self) -> list[str]:
        """Return the names of the variables that are set for an API key or an account."""
        return self._list_set(ACCOUNT_VARIABLES)

    def certificate_variables(self) -> list[str]:
        """Return the names of the variables that are set for the certificate of the server."""
        return self._list_set(CERTIFICATE_VARIABLES)

    def _list_set(self, names: Sequence[str]) -> list[str]:
        variables = self.variables()
        return [name for name in names if name in variables]

    def _require_one_account(self) -> None:
        names = [name for name in self.account_variables() if not name.endswith("USERNAME")]
        if len(names) > 1:
            raise ConfigurationError(
                f"{' and '.join(names)} cannot be combined",
                hint="set only one of them: Elasticsearch accepts either an API key or a password",
            )
        has_password = self.password is not None or self.password_file is not None
        if has_password != (self.username is not None):
            raise ConfigurationError(
                f"only one of {_PREFIX}USERNAME and {_PREFIX}PASSWORD is set",
                hint=f"set both of them, or set {_PREFIX}API_KEY instead",
            )
        if self.ca_file is not None and self.fingerprint is not None:
            raise ConfigurationError(
                f"{_PREFIX}CA_FILE and {_PREFIX}FINGERPRINT cannot be combined",
                hint="set only one of them: each verifies the server's certificate",
            )


def split_nodes(url: str) -> list[str]:
    """Split a comma-separated list of node addresses; a password may contain a comma too."""
    return [node.strip() for node in _BETWEEN_NODES.split(url)]


def _read_text(env: Mapping[str, str], name: str) -> str | None:
    return env.get(_PREFIX + name, "").strip() or None


def _read_file_path(env: Mapping[str, str], name: str) -> Path | None:
    text = _read_text(env, name)
    if text is None:
        return None
    if not Path(text).is_absolute():
        raise ConfigurationError(
            f"{_PREFIX}{name} is a relative path: {text}", hint="set an absolute path"
        )
    return Path(text)


def _read_matching(
    env: Mapping[str, str], name: str, pattern: re.Pattern[str], expected: str
) -> str | None:
    text = _read_text(env, name)
    if text is not None and not pattern.fullmatch(text):
        raise ConfigurationError(  # not quoted: a secret may have been put into the wrong variable
            f"{_PREFIX}{name} is not valid", hint=f"expected {expected}"
        )
    return text


def _read_number(env: Mapping[str, str], name: str, minimum: int, maximum: int) -> int | None:
    text = _read_text(env, name)
    if text is None:
        return None
    if not text.isdecimal() or not minimum <= int(text) <= maximum:
        raise ConfigurationError(
            f"{_PREFIX}{name} is not valid: {text[:20]!r}",
            hint=f"set it to a whole number from {minimum} to {maximum}",
        )
    return int(text)
