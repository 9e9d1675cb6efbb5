"""The connection to Elasticsearch from the settings, with its secrets.

A sealed secret is encrypted with the installation's master key, so it may be stored where others
can read it.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.settings import Settings
from rag_assets.storage.index.connection import ElasticsearchConnection

if TYPE_CHECKING:
    from rag_assets.billing.master_key import MasterKeys

_SEALED_PREFIX: Final = "sealed:"
_ASSOCIATED_DATA: Final = b"rag-assets secret of Elasticsearch"
_NONCE_BYTES: Final = 12
_SEAL_COMMAND: Final = "rag-assets elasticsearch seal"
_MAX_SECRET_BYTES: Final = 8192


def find_external_connection(
    settings: Settings, environ: Mapping[str, str] | None = None
) -> ElasticsearchConnection | None:
    """Return the connection to the external Elasticsearch; None if the embedded server is used.

    Args:
        environ: environment variables, which may contain the master key; by default those of this
            process.

    Raises:
        ConfigurationError: a file cannot be read, or a secret cannot be unsealed.
    """
    configured = settings.elasticsearch
    if settings.elasticsearch_url is not None:
        if configured.cloud_id is not None:
            raise ConfigurationError(
                "RAG_ASSETS_ELASTICSEARCH_URL and RAG_ASSETS_ELASTICSEARCH_CLOUD_ID cannot be"
                " combined",
                hint="set only one of them",
            )
        return build_connection(settings, settings.elasticsearch_url, environ)
    if configured.cloud_id is not None:
        nodes = ElasticsearchConnection.from_cloud_id(configured.cloud_id)
        return _add_access(settings, nodes, environ)
    names = configured.account_variables() + configured.certificate_variables()
    if names:
        raise ConfigurationError(
            f"no address of Elasticsearch is set for {' and '.join(names)}: the embedded"
            " server would be used",
            hint="set RAG_ASSETS_ELASTICSEARCH_URL or RAG_ASSETS_ELASTICSEARCH_CLOUD_ID as well, or"
            " unset the account and the certificate",
        )
    return None


def build_connection(
    settings: Settings, url: str, environ: Mapping[str, str] | None = None
) -> ElasticsearchConnection:
    """Return the connection to an address, with the account and the certificate of the settings."""
    return _add_access(settings, ElasticsearchConnection.from_url(url), environ)


def _add_access(
    settings: Settings, nodes: ElasticsearchConnection, environ: Mapping[str, str] | None
) -> ElasticsearchConnection:
    """Return a connection with the account and the certificate of the settings."""
    configured = settings.elasticsearch
    names = configured.account_variables()
    if nodes.account is not None and names:
        raise ConfigurationError(
            "an account of Elasticsearch is set twice: in the address, and by"
            f" {' and '.join(names)}",
            hint="set the account only once: remove NAME:PASSWORD@ from the address, or unset the"
            " variables",
        )
    if configured.ca_file is not None:
        _require_certificates(configured.ca_file)
    if configured.certificate_variables():
        _require_tls(nodes)
    secrets = _Secrets(settings, os.environ if environ is None else environ)
    api_key = secrets.read("API_KEY", configured.api_key, configured.api_key_file)
    password = secrets.read("PASSWORD", configured.password, configured.password_file)
    account = nodes.account
    if configured.username is not None and password is not None:
        account = (configured.username, password)
    return replace(
        nodes,
        api_key=api_key,
        account=account,
        ca_file=configured.ca_file,
        fingerprint=configured.fingerprint,
    )


def seal_secret(settings: Settings, secret: str, environ: Mapping[str, str] | None = None) -> str:
    """Encrypt an API key or a password with the master key, which is created if missing.

    Raises:
        ConfigurationError: the master key cannot be used.
    """
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    from rag_assets.billing.master_key import KeyFile, get_key_file_path, read_environment_keys

    env = os.environ if environ is None else environ
    keys = (
        read_environment_keys(env)
        or KeyFile(get_key_file_path(settings, env), [settings.local]).create()
    )
    nonce = os.urandom(_NONCE_BYTES)
    sealed = nonce + AESGCM(keys.present.secret).encrypt(nonce, secret.encode(), _ASSOCIATED_DATA)
    return _SEALED_PREFIX + base64.b64encode(sealed).decode()


def list_sealed_secrets(
    settings: Settings, environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Unseal the sealed secrets of the settings; return their plain texts by variable."""
    configured = settings.elasticsearch
    secrets = _Secrets(settings, os.environ if environ is None else environ)
    texts = [
        secrets.find_text("API_KEY", configured.api_key, configured.api_key_file),
        secrets.find_text("PASSWORD", configured.password, configured.password_file),
    ]
    return {
        variable: secrets.unseal(variable, text)
        for variable, text in texts
        if text is not None and text.startswith(_SEALED_PREFIX)
    }


class _Secrets:
    """A reader of secrets from variables or files, which unseals them."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ

    def read(self, name: str, value: str | None, file: Path | None) -> str | None:
        variable, text = self.find_text(name, value, file)
        if text is None or not text.startswith(_SEALED_PREFIX):
            return text
        return self.unseal(variable, text)

    def find_text(self, name: str, value: str | None, file: Path | None) -> tuple[str, str | None]:
        """Return the name of the variable, and the secret in it or in the file it names."""
        variable = f"RAG_ASSETS_ELASTICSEARCH_{name}"
        if file is None:
            return variable, value
        return f"{variable}_FILE", _read_secret_file(f"{variable}_FILE", file)

    def unseal(self, variable: str, value: str) -> str:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            sealed = base64.b64decode(value.removeprefix(_SEALED_PREFIX), validate=True)
        except (binascii.Error, ValueError):
            sealed = b""
        keys = self._find_master_keys()
        for key in (keys.present, *keys.former) if keys else ():
            try:
                nonce, text = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
                return AESGCM(key.secret).decrypt(nonce, text, _ASSOCIATED_DATA).decode()
            except (InvalidTag, ValueError):
                continue
        raise ConfigurationError(
            f"{variable} cannot be unsealed: it was altered, or sealed with another master key",
            hint=f"seal it again with the master key of this installation: {_SEAL_COMMAND}",
        )

    def _find_master_keys(self) -> MasterKeys | None:
        from rag_assets.billing.master_key import KeyFile, get_key_file_path, read_environment_keys

        return (
            read_environment_keys(self._environ)
            or KeyFile(get_key_file_path(self._settings, self._environ)).read()
        )


def _read_secret_file(variable: str, file: Path) -> str:
    try:
        with file.open("rb") as stream:
            text = stream.read(_MAX_SECRET_BYTES).decode().strip()
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{variable} cannot be read ({type(error).__name__}): {file}",
            hint="set it to a file that contains only the secret and that this user can read",
        ) from None
    if not text:
        raise ConfigurationError(
            f"{variable} refers to an empty file: {file}", hint="write the secret into the file"
        )
    return text


def _require_certificates(file: Path) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=file)
    except ssl.SSLError:
        raise ConfigurationError(
            f"RAG_ASSETS_ELASTICSEARCH_CA_FILE contains no certificate in PEM format: {file}",
            hint="set it to a file with certificates in PEM format",
        ) from None
    except OSError:
        raise ConfigurationError(
            f"RAG_ASSETS_ELASTICSEARCH_CA_FILE cannot be read: {file}",
            hint="set it to a readable file with certificates in PEM format",
        ) from None


def _require_tls(connection: ElasticsearchConnection) -> None:
    if not all(node.startswith("https://") for node in connection.nodes):
        raise ConfigurationError(
            "a certificate of Elasticsearch is set, but RAG_ASSETS_ELASTICSEARCH_URL does not"
            " begin with https://",
            hint="use https://, because certificates are verified only with TLS",
        )
