"""Ownership of indexes and aliases: each names the installation that created it.

An index has the installation's id in its mapping's `_meta`; an alias has it in the name of its
filter. A cluster may contain other installations' indexes under any name; these are never changed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from elasticsearch import ApiError, Elasticsearch, NotFoundError

from rag_assets.common.errors import ForeignInstallation
from rag_assets.storage.index.elasticsearch.errors import translated_errors
from rag_assets.storage.index.elasticsearch.mapping import build_write_alias
from rag_assets.storage.index.elasticsearch.server import Server, parse_cluster_id

_META: Final = "rag_assets"
_FILTER_NAME: Final = "rag-assets installation "
_VERIFIED_SECONDS: Final = 30.0
"""Seconds until a verified index is checked again."""


class Ownership:
    """Requires that indexes and aliases belong to an installation, else raises ForeignInstallation.

    Args:
        installation: the owner of the indexes and aliases; None: every user of the store owns all
            of them.
    """

    def __init__(self, client: Elasticsearch, installation: UUID | None) -> None:
        self.server = Server(client)
        self._client = client
        self._installation = installation
        self._verified: dict[str, float] = {}

    @property
    def meta(self) -> dict[str, Any]:
        """Return the `_meta` of a new index, which names its owner."""
        return {} if self._installation is None else {_META: {"installation": self._owner}}

    def write_aliases(self, index_name: str) -> dict[str, Any]:
        """Return the aliases of a new index: one alias, for writing entries; see entries.bulk."""
        all_entries = self.named({"bool": {"filter": [{"match_all": {}}]}})
        return {build_write_alias(index_name): {"filter": all_entries}}

    def named(self, alias_filter: Mapping[str, Any]) -> dict[str, Any]:
        """Return an alias's filter with its owner in the name (`_name`) of the filter."""
        if self._installation is None:
            return dict(alias_filter)
        return {"bool": {**alias_filter["bool"], "_name": f"{_FILTER_NAME}{self._owner}"}}

    def cluster_id(self) -> str | None:
        """Return the id of the cluster; None if the cluster does not answer or does not state it.

        Raises:
            IndexUnavailable: the server is not Elasticsearch.
        """
        with translated_errors():
            info = self.server.info()
        if info.cluster_id is not None or info.is_serverless:
            return info.cluster_id
        try:
            state = self._client.options(request_timeout=5, max_retries=0).cluster.state(
                metric="version", filter_path="cluster_uuid"
            )
        except ApiError:
            return None
        except Exception as error:
            if type(error).__module__.startswith("elastic_transport"):
                return None
            raise
        return parse_cluster_id(state.get("cluster_uuid"))

    def select(self, patterns: Iterable[str]) -> list[str]:
        """Return the owner's indexes that match a pattern, sorted, including closed indexes."""
        with translated_errors():
            mapping = self._client.indices.get_mapping(
                index=list(patterns),
                filter_path=["*.mappings._meta", "*.mappings.dynamic"],
                expand_wildcards=["open", "closed"],
            )
        names = [name for name, body in mapping.items() if self._is_own(body)]
        self._verified |= dict.fromkeys(names, time.monotonic())
        return sorted(names)

    def require(self, index_name: str) -> None:
        """Require that an index belongs to the installation, before it is changed.

        An index that does not exist passes. An index is checked at most twice a minute.
        """
        if self._installation is None:
            return
        verified = self._verified.get(index_name, -_VERIFIED_SECONDS)
        if time.monotonic() - verified < _VERIFIED_SECONDS:
            return
        with translated_errors():
            try:
                body = self._client.indices.get_mapping(index=index_name)[index_name]
            except (NotFoundError, KeyError):
                return
        if not self._is_own(body):
            raise self._build_foreign_error(f"index {index_name!r}", _read_owner(body))
        self._verified[index_name] = time.monotonic()

    def make_writable(self, index_name: str) -> bool:
        """Add an index's missing write alias; return whether it was missing.

        Indexes of earlier versions lack it.
        """
        self.forget(index_name)
        self.require(index_name)
        added = False
        with translated_errors():
            for alias, body in self.write_aliases(index_name).items():
                try:
                    if not self._client.indices.exists_alias(name=alias, index=index_name):
                        self._client.indices.put_alias(name=alias, index=index_name, **body)
                        added = True
                except NotFoundError:
                    return False
        return added

    def forget(self, index_name: str) -> None:
        """Check an index again at its next use, because it was deleted or replaced."""
        self._verified.pop(index_name, None)

    def has_alias(self, alias: str) -> bool:
        """Return whether an alias exists and belongs to the installation."""
        try:
            return self.require_alias(alias)
        except ForeignInstallation:
            return False

    def require_alias(self, alias: str) -> bool:
        """Require that an alias belongs to the installation; return whether it exists."""
        with translated_errors():
            try:
                aliases = self._client.indices.get_alias(name=alias)
            except NotFoundError:
                return False
        for index_name, body in aliases.items():
            owner = _read_filter_owner(body["aliases"][alias].get("filter", {}))
            if owner is None:
                self.require(index_name)
            elif self._installation is not None and owner != self._owner:
                raise self._build_foreign_error(f"alias {alias!r}", owner)
        return bool(aliases)

    def adopt(self, indexes: Mapping[str, str]) -> None:
        """Claim indexes that an earlier version of the program created without an owner.

        Args:
            indexes: the UUID of each index, by name; an index with another UUID is not claimed.
        """
        for name, identity in indexes.items():
            with translated_errors():
                try:
                    index = self._client.indices.get(index=name)[name]
                except NotFoundError:
                    continue
                is_same = index["settings"]["index"]["uuid"] == identity
                if is_same and _read_owner(index) is None:
                    self._client.indices.put_mapping(index=name, meta=self.meta)

    def take_over(self, patterns: Iterable[str], former: UUID) -> None:
        """Claim the indexes of the original installation, and their aliases, in a copied cluster.

        Args:
            former: the original installation, which does not use this cluster.
        """
        with translated_errors():
            indexes = self._client.indices.get(index=list(patterns))
            for name, body in indexes.items():
                if _read_owner(body) != str(former):
                    continue
                self._client.indices.put_mapping(index=name, meta=self.meta)
                for alias, details in body["aliases"].items():
                    action = {
                        "index": name,
                        "alias": alias,
                        "routing": details.get("search_routing"),
                        "filter": self.named(details["filter"]),
                    }
                    self._client.indices.update_aliases(actions=[{"add": action}])

    @property
    def _owner(self) -> str:
        return str(self._installation)

    def _is_own(self, body: Mapping[str, Any]) -> bool:
        return self._installation is None or _read_owner(body) == self._owner

    def _build_foreign_error(self, what: str, owner: str | None) -> ForeignInstallation:
        named = f"installation {owner}" if owner else "an unknown installation"
        remedy = "" if owner else "delete it if nobody needs it; or "
        return ForeignInstallation(
            f"{what} in Elasticsearch belongs to {named}, but this is installation {self._owner}",
            hint=f"{remedy}set RAG_ASSETS_INDEX_PREFIX to a prefix that no other installation uses"
            " there",
        )


def _read_owner(body: Mapping[str, Any]) -> str | None:
    meta = body.get("mappings", {}).get("_meta", {}).get(_META, {})
    owner = meta.get("installation") if isinstance(meta, Mapping) else None
    return None if owner is None else str(owner)


def _read_filter_owner(alias_filter: Mapping[str, Any]) -> str | None:
    name = str(alias_filter.get("bool", {}).get("_name", ""))
    return name.removeprefix(_FILTER_NAME) if name.startswith(_FILTER_NAME) else None
