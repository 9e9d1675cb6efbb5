"""Security settings and limits of the service, from the environment.

| variable | default | meaning |
|---|---|---|
| RAG_ASSETS_JWT_SECRET | none | HS256: the secret shared with the signer, 32 bytes or more |
| RAG_ASSETS_JWT_PUBLIC_KEY | none | RS256, ES256 or EdDSA: PEM file of the signer's public key |
| RAG_ASSETS_JWT_JWKS | none | the same algorithms with a key set: a file, or an https URL |
| RAG_ASSETS_JWT_ISSUER | any | accepted issuer; required with a public key or a key set |
| RAG_ASSETS_JWT_AUDIENCE | none | accepted audience; required with a public key or a key set |
| RAG_ASSETS_JWT_LEEWAY | 30 | seconds by which clocks may differ |
| RAG_ASSETS_JWT_TENANTS_CLAIM | tenants | claim with the tenants that may be searched |
| RAG_ASSETS_JWT_ORGANIZATION_CLAIM | organization | claim with the organization, for its projects |
| RAG_ASSETS_JWT_ROLE_CLAIM | role | claim with the role, such as admin or member |
| RAG_ASSETS_JWT_GROUPS_CLAIM | groups | claim with the subject's groups |
| RAG_ASSETS_SERVICE_RATE | 600/minute | requests of a token: a number / second, minute, hour, day |
| RAG_ASSETS_SERVICE_WRITE_RATE | 60000/minute | records that a token writes, in the same format |
| RAG_ASSETS_SERVICE_ATTEMPTS | 60/minute | requests of an address without a valid token |
| RAG_ASSETS_MCP_ORIGINS | none | origins of web pages that may use MCP, separated by commas |
| RAG_ASSETS_SERVICE_SEARCHES | 32 | concurrent searches; a tenant gets at most three quarters |
| RAG_ASSETS_SERVICE_THREADS | 8 | concurrent reads of lists and documents; same share per tenant |
| RAG_ASSETS_SERVICE_UPLOADS | 16 | concurrent uploads; same share per tenant |
| RAG_ASSETS_SERVICE_WAIT | 10 | seconds a request may wait; longer waits are refused immediately |
| RAG_ASSETS_SERVICE_KEEP_ALIVE | 75 | seconds that a connection may be idle between requests |
| RAG_ASSETS_SERVICE_WORKERS | 1 | number of worker processes, as `serve --workers`: at most 8 |
| RAG_ASSETS_SERVICE_PROXIES | none | networks trusted for X-Forwarded-For, separated by commas |
| RAG_ASSETS_SERVICE_CLEARTEXT | warn | outside loopback: warn, refuse, or allow (a proxy has TLS) |
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Literal, TypeAlias

from rag_assets.api.rate_limits import Rate
from rag_assets.common.errors import ConfigurationError

Cleartext: TypeAlias = Literal["warn", "refuse", "allow"]
Network: TypeAlias = IPv4Network | IPv6Network

KEEP_ALIVE_SECONDS = 75
"""Seconds; longer than the 60 of typical proxies, so that proxies close idle connections first."""

METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Internal variable with the folder in which workers share metrics; prometheus_client reads it."""

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@]+")
_SECRET_BYTES = 32
MAX_WORKERS = 8
_NUMBERS: Mapping[str, tuple[int, int, int]] = {
    "searches": (32, 1, 1_000),
    "threads": (8, 1, 10),
    "uploads": (16, 1, 256),
    "wait": (10, 0, 60),
    "keep_alive": (KEEP_ALIVE_SECONDS, 1, 3_600),
    "workers": (1, 1, MAX_WORKERS),
}
"""Default, minimum and maximum of each RAG_ASSETS_SERVICE_… setting with a number."""
_LEEWAY = (30, 0, 300)
_MIN_SEARCHES_PER_WORKER = 2
_ATTEMPTS = "RAG_ASSETS_SERVICE_ATTEMPTS"
_WRITE_RATE = "RAG_ASSETS_SERVICE_WRITE_RATE"
_KEYS = ("RAG_ASSETS_JWT_SECRET", "RAG_ASSETS_JWT_PUBLIC_KEY", "RAG_ASSETS_JWT_JWKS")


@dataclass(frozen=True, slots=True)
class JwtSettings:
    """Settings of accepted JWTs; exactly one of the three keys is set.

    Attributes:
        public_key: a PEM file.
        jwks: a file or an https URL.
        leeway: seconds by which clocks may differ.
    """

    secret: str | None = field(default=None, repr=False)
    public_key: Path | None = None
    jwks: str | None = None
    issuer: str | None = None
    audience: str | None = None
    leeway: int = 30
    tenants_claim: str = "tenants"
    organization_claim: str = "organization"
    role_claim: str = "role"
    groups_claim: str = "groups"

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> JwtSettings | None:
        """Read the settings; None without a key, which refuses all JWTs.

        Raises:
            ConfigurationError: more than one key is set, or the settings are unsafe.
        """
        values = [name for name in _KEYS if environ.get(name)]
        if not values:
            return None
        if len(values) > 1:
            raise ConfigurationError(
                f"{' and '.join(values)} are set, but only one key can verify tokens",
                hint="set only one of them",
            )
        name, value = values[0], environ[values[0]]
        issuer = environ.get("RAG_ASSETS_JWT_ISSUER") or None
        audience = environ.get("RAG_ASSETS_JWT_AUDIENCE") or None
        if name != "RAG_ASSETS_JWT_SECRET" and not (issuer and audience):
            raise ConfigurationError(
                f"{name} is set without RAG_ASSETS_JWT_ISSUER and RAG_ASSETS_JWT_AUDIENCE",
                hint="set both, because the same key may also sign tokens for other services",
            )
        if name == "RAG_ASSETS_JWT_SECRET" and len(value.encode()) < _SECRET_BYTES:
            raise ConfigurationError(
                f"RAG_ASSETS_JWT_SECRET is shorter than {_SECRET_BYTES} bytes",
                hint="create a longer secret with `openssl rand -hex 32`",
            )
        return cls(
            secret=value if name == "RAG_ASSETS_JWT_SECRET" else None,
            public_key=Path(value).expanduser() if name == "RAG_ASSETS_JWT_PUBLIC_KEY" else None,
            jwks=value if name == "RAG_ASSETS_JWT_JWKS" else None,
            issuer=issuer,
            audience=audience,
            leeway=_parse_integer(environ, "RAG_ASSETS_JWT_LEEWAY", *_LEEWAY),
            tenants_claim=environ.get("RAG_ASSETS_JWT_TENANTS_CLAIM") or "tenants",
            organization_claim=environ.get("RAG_ASSETS_JWT_ORGANIZATION_CLAIM") or "organization",
            role_claim=environ.get("RAG_ASSETS_JWT_ROLE_CLAIM") or "role",
            groups_claim=environ.get("RAG_ASSETS_JWT_GROUPS_CLAIM") or "groups",
        )


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """The accepted credentials and the limits of the service.

    Attributes:
        jwt: accepted JWTs; None accepts only service tokens.
        write_rate: rate limit for the records that each token writes.
        attempts: rate limit for the requests of each address without a valid token.
        threads: number of threads that read lists and documents.
        uploads: maximum concurrent uploads.
        wait: longest wait for a turn, in seconds.
        keep_alive: seconds that a connection may be idle between requests.
        mcp_origins: origins of web pages that may use MCP.
        cleartext: whether to warn, refuse or allow if other machines can reach the service, which
            does not support TLS.
    """

    jwt: JwtSettings | None = None
    rate: Rate = field(default_factory=lambda: Rate(600, 60.0))
    write_rate: Rate = field(default_factory=lambda: Rate(60_000, 60.0))
    attempts: Rate = field(default_factory=lambda: Rate(60, 60.0))
    searches: int = 32
    threads: int = 8
    uploads: int = 16
    wait: int = 10
    keep_alive: int = KEEP_ALIVE_SECONDS
    workers: int = 1
    mcp_origins: frozenset[str] = frozenset()
    proxies: tuple[Network, ...] = ()
    cleartext: Cleartext = "warn"

    def __post_init__(self) -> None:
        for name, turns, minimum in (
            ("SEARCHES", self.searches, _MIN_SEARCHES_PER_WORKER * self.workers),
            ("THREADS", self.threads, self.workers),
            ("UPLOADS", self.uploads, self.workers),
        ):
            if self.workers > 1 and turns < minimum:
                raise ConfigurationError(
                    f"RAG_ASSETS_SERVICE_{name} is {turns}: too few to share among "
                    f"{self.workers} workers",
                    hint=f"set it to {minimum} or more, or use fewer workers",
                )

    @classmethod
    def from_environment(
        cls, environ: Mapping[str, str] | None = None, *, workers: int | None = None
    ) -> ServiceSettings:
        """Read the settings.

        Args:
            workers: overrides RAG_ASSETS_SERVICE_WORKERS.

        Raises:
            ConfigurationError: a setting is not valid; the message names it.
        """
        env = os.environ if environ is None else environ
        numbers = {
            name: _parse_integer(env, f"RAG_ASSETS_SERVICE_{name.upper()}", *bounds)
            for name, bounds in _NUMBERS.items()
            if name != "workers" or not workers
        }
        if workers:
            numbers["workers"] = workers
        return cls(
            jwt=JwtSettings.from_environment(env),
            rate=Rate.parse(env.get("RAG_ASSETS_SERVICE_RATE") or "600/minute"),
            write_rate=Rate.parse(env.get(_WRITE_RATE) or "60000/minute", _WRITE_RATE),
            attempts=Rate.parse(env.get(_ATTEMPTS) or "60/minute", _ATTEMPTS),
            **numbers,
            mcp_origins=_parse_origins(env.get("RAG_ASSETS_MCP_ORIGINS", "")),
            proxies=_parse_networks(env.get("RAG_ASSETS_SERVICE_PROXIES", "")),
            cleartext=_parse_cleartext(env.get("RAG_ASSETS_SERVICE_CLEARTEXT") or "warn"),
        )


def _parse_origins(text: str) -> frozenset[str]:
    values = {part.strip() for part in text.split(",")} - {""}
    for origin in sorted(values):
        if not _ORIGIN.fullmatch(origin):
            raise ConfigurationError(
                f"RAG_ASSETS_MCP_ORIGINS contains an invalid origin: {origin}",
                hint="use a format such as https://app.example, without a path",
            )
    return frozenset(values)


def _parse_networks(text: str) -> tuple[Network, ...]:
    values = sorted({part.strip() for part in text.split(",")} - {""})
    try:
        return tuple(ip_network(network) for network in values)
    except ValueError as error:
        raise ConfigurationError(
            f"RAG_ASSETS_SERVICE_PROXIES contains an invalid address or network: {error}",
            hint="use a format such as 10.0.0.7 or 10.0.0.0/24",
        ) from None


def _parse_cleartext(text: str) -> Cleartext:
    match text:
        case "warn" | "refuse" | "allow":
            return text
    raise ConfigurationError(
        f"RAG_ASSETS_SERVICE_CLEARTEXT is not valid: {text}", hint="set it to warn, refuse or allow"
    )


def _parse_integer(
    environ: Mapping[str, str], name: str, default: int, minimum: int, maximum: int
) -> int:
    text = environ.get(name) or str(default)
    if not (text.isascii() and text.isdecimal()) or not minimum <= int(text) <= maximum:
        raise ConfigurationError(
            f"{name} is not valid: {text}",
            hint=f"set it to a whole number from {minimum} to {maximum}",
        )
    return int(text)
