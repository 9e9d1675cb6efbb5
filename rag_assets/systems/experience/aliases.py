"""Matches names of technologies, task types and agent types in all their spelling variants.

Entries keep the spelling that they were captured with. Spellings are resolved when a question is
asked, so a new alias applies at once and needs no new index.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from sqlalchemy import literal, select, union_all

from rag_assets.api.experience_responses import UnmatchedName
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.systems.experience.tables import knowledge_staging

NAMES: Final = ("agent_type", "task_type", "technology")
"""The fields of an entry that questions filter by."""
_MAX_SPELLINGS: Final = 90
_SHIPPED: Final = """
postgresql postgres pg pgsql psql
kubernetes k8s kube
javascript js ecmascript
typescript ts
python py python3
go golang
c# csharp
c++ cpp cplusplus
.net dotnet
node.js nodejs node
react reactjs react.js
vue vuejs vue.js
next.js nextjs
ruby rb
rubyonrails rails ror
sqlserver mssql microsoftsqlserver
mongodb mongo
sqlite sqlite3
rabbitmq rmq
apachekafka kafka
apachespark spark
apacheairflow airflow
terraform tf
aws amazonwebservices
gcp googlecloud googlecloudplatform
azure microsoftazure
githubactions gha
tailwindcss tailwind
rust rs
kotlin kt
powershell pwsh
graphql gql
html html5
css css3
yaml yml
openapi swagger
protobuf protocolbuffers
machinelearning ml
frontend fe
backend be
database db
documentation docs
infrastructure infra
configuration config
development dev
endtoend e2e
qualityassurance qa
"""


class Aliases:
    """Groups of spelling variants of the same name.

    Args:
        own: a tenant's own spelling variants, by name. They replace the shipped variants of that
            name.
    """

    def __init__(self, own: Mapping[str, Sequence[str]]) -> None:
        groups = {_fold_name(name): names for name, *names in map(str.split, _list_shipped_lines())}
        groups |= {_fold_name(name): [*names] for name, names in own.items()}
        self._names = {_fold_name(one): name for name, names in groups.items() for one in names}

    def name_of(self, written: str) -> str:
        """Return the name that a spelling variant stands for."""
        folded = _fold_name(written)
        return self._names.get(folded, folded)

    def spellings(self, asked: str, stored: Collection[str]) -> tuple[str, ...]:
        """Return the spelling variants of a name that are stored."""
        name = self.name_of(asked)
        return tuple(sorted(one for one in stored if self.name_of(one) == name))[:_MAX_SPELLINGS]


def resolve_names(
    catalog: Catalog, tenant_id: str, aliases: Aliases, asked: Mapping[str, str | None]
) -> tuple[dict[str, tuple[str, ...]], tuple[UnmatchedName, ...]]:
    """Return the stored spelling variants of each name in a question, and names without any.

    Args:
        catalog: contains the entries.
        tenant_id: tenant of the entries.
        aliases: aliases of the tenant.
        asked: names by field; None matches all entries.
    """
    wanted = {field: name for field, name in asked.items() if name is not None}
    stored = _read_stored_names(catalog, tenant_id, wanted) if wanted else {}
    found = {field: aliases.spellings(name, stored[field]) for field, name in wanted.items()}
    unmatched = tuple(
        UnmatchedName(field, "no entry has this value or a value with the same meaning")
        for field, spellings in found.items()
        if not spellings
    )
    return {field: spellings or (wanted[field],) for field, spellings in found.items()}, unmatched


def _read_stored_names(
    catalog: Catalog, tenant_id: str, fields: Collection[str]
) -> dict[str, frozenset[str]]:
    entries = knowledge_staging.c
    queries = [
        select(literal(field), entries[field])
        .where(entries.tenant == tenant_id, entries.embedded, entries[field].is_not(None))
        .distinct()
        for field in fields
    ]
    with catalog.database.begin() as connection:
        rows = connection.execute(union_all(*queries)).all()
    return {field: frozenset(name for of, name in rows if of == field) for field in fields}


def _fold_name(written: str) -> str:
    """Return a name in lower case without blanks and punctuation, except + and #."""
    compatible = unicodedata.normalize("NFKC", written).casefold()
    folded = "".join(c for c in compatible if c.isalnum() or c in "+#")
    return folded or compatible


def _list_shipped_lines() -> Iterator[str]:
    yield from _SHIPPED.strip().splitlines()
