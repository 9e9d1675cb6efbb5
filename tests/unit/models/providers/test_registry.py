"""Every provider is one value, from which lookups, configuration and documentation derive."""

import json
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from rag_assets.billing.chat_models import find_chat_model
from rag_assets.billing.key_ring import PURPOSES
from rag_assets.common.errors import ConfigurationError
from rag_assets.models.config import ChatModelConfig, EmbedderConfig, RerankConfig
from rag_assets.models.embedding.remote import KnownModel
from rag_assets.models.factory import build_embedder, build_reranker, get_embedder_id
from rag_assets.models.prices import FREE
from rag_assets.models.providers.base import RemoteEmbedding
from rag_assets.models.providers.registry import (
    PROVIDERS,
    find_chat_provider,
    get_provider,
    list_auto_embeddings,
)
from rag_assets.tenants.model import Tenant

DOCS = Path(__file__).parents[4] / "docs"
COMPATIBLE = ("ollama", "vllm", "openai-compatible")
REMOTE = [name for name, provider in PROVIDERS.items() if provider.key != "none"]
EMBEDDINGS = "| model | dimensions | tokens of a text | tokens of a request | price |"
CHAT = "| model | input | output |"
EMBEDDER_FIELDS = "[`embedder`](../configuration.md#embedder)"
CHAT_FIELDS = "[`chat_model`](../configuration.md#chat_model)"
RERANKERS = (
    "| reranker | tokens of question and passage | per 1,000 searches | per million tokens |"
)


def page(provider: str) -> str:
    """Return the documentation page of a provider."""
    name = "openai-compatible" if provider in COMPATIBLE else provider
    return (DOCS / "providers" / f"{name}.md").read_text(encoding="utf-8")


def rows(text: str, header: str) -> list[tuple[str, ...]]:
    """Return the rows of all tables with that header."""
    found: list[tuple[str, ...]] = []
    for table in text.split(f"{header}\n")[1:]:
        for line in table.splitlines()[1:]:
            if not line.startswith("|"):
                break
            found.append(tuple(cell.strip() for cell in line.strip("|").split("|")))
    return found


def number(value: float | None) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:g}"


def dimensions(known: KnownModel) -> str:
    if not known.possible_dimensions:
        return f"1 to {known.dimensions}; by default {known.dimensions}"
    if len(known.possible_dimensions) == 1:
        return str(known.dimensions)
    return ", ".join(
        f"**{n}**" if n == known.dimensions else str(n) for n in known.possible_dimensions
    )


@pytest.mark.parametrize("name", REMOTE)
def test_a_providers_page_lists_its_embedding_models(name: str) -> None:
    offer = PROVIDERS[name].embedding
    assert isinstance(offer, RemoteEmbedding)
    listed = {
        (model, dimensions(known), *map(number, (known.input_tokens, known.request_tokens, price)))
        for model, known in offer.models.items()
        for price in [known.price.per_million if known.price else None]
    }
    described = set(rows(page(name), EMBEDDINGS))
    assert listed <= described if name in COMPATIBLE else listed == described
    for texts in {known.request_texts for known in offer.models.values()}:
        assert re.search(rf"\b{texts} texts?\b", page(name))


@pytest.mark.parametrize("name", REMOTE)
def test_a_providers_page_lists_its_chat_prices_and_rerankers(name: str) -> None:
    provider = PROVIDERS[name]
    prices = provider.chat.prices if provider.chat else {}
    assert set(rows(page(name), CHAT)) == {
        (model, number(price.input_per_million), number(price.output_per_million))
        for model, price in prices.items()
    }
    rerankers = provider.reranking.models if provider.reranking else {}
    assert set(rows(page(name), RERANKERS)) == {
        (model, *map(number, (of.tokens, of.per_thousand_searches, of.per_million_tokens)))
        for model, of in rerankers.items()
    }


@pytest.mark.parametrize("name", REMOTE)
def test_the_fragment_of_a_providers_page_has_all_its_settings(name: str) -> None:
    fragment = page(name).split("```yaml\n")[1].split("```")[0]
    listed = YAML(typ="safe").load(fragment)["tenants"]
    tenants = [Tenant.model_validate(values) for values in listed]
    embedders = [tenant.embedder for tenant in tenants if tenant.embedder.provider == name]
    assert embedders
    for embedder in embedders:
        assert get_embedder_id(embedder).startswith(f"{name}/")
    provider = PROVIDERS[name]
    used = {
        setting
        for embedder in embedders
        if embedder.connection is not None
        for setting in embedder.connection.model_fields_set
    }
    assert used == set(provider.settings.model_fields)
    if provider.reranking is not None:
        rerankers = [tenant.retrieval.rerank for tenant in tenants]
        assert name in {rerank.provider for rerank in rerankers if rerank is not None}
    if provider.chat is not None and name not in COMPATIBLE:
        assert any(
            tenant.chat_model is not None and find_chat_model(tenant)[1].name == name
            for tenant in tenants
        )
    has_chat_model = any(tenant.chat_model is not None for tenant in tenants)
    assert EMBEDDER_FIELDS in page(name)
    assert (CHAT_FIELDS in page(name)) == has_chat_model


@pytest.mark.parametrize("name", REMOTE)
def test_a_providers_page_is_linked(name: str) -> None:
    file = f"providers/{'openai-compatible' if name in COMPATIBLE else name}.md"
    assert f"({file})" in (DOCS / "providers.md").read_text(encoding="utf-8")
    assert f": {file}" in (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    extra = PROVIDERS[name].extra
    assert extra is None or f"pip install 'rag-assets[{extra.name}]'" in page(name)


def test_every_extra_of_a_provider_installs_its_sdk() -> None:
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    for provider in PROVIDERS.values():
        if provider.extra is not None:
            package = provider.extra.module.replace(".", "-")
            assert any(need.startswith(package) for need in extras[provider.extra.name])


def test_a_missing_sdk_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = {"voyageai", "cohere", "botocore", "azure", "azure.identity"}
    monkeypatch.setattr(
        "rag_assets.models.providers.base.find_spec",
        lambda name: None if name in missing else find_spec(name),
    )
    region = {"region": "eu-central-1"}
    for name, connection in (("voyage", None), ("cohere", None), ("bedrock", region)):
        config = EmbedderConfig.model_validate({"provider": name, "connection": connection})
        for build in (get_embedder_id, build_embedder):
            with pytest.raises(ConfigurationError, match="not installed") as caught:
                build(config)
            assert caught.value.hint == f"install it: pip install 'rag-assets[{name}]'"
    for name in ("voyage", "cohere"):
        with pytest.raises(ConfigurationError, match="not installed"):
            build_reranker(RerankConfig.model_validate({"provider": name}))
    azure = {"provider": "azure", "base_url": "https://acme.openai.azure.com"}
    azure["model"] = "text-embedding-3-small"
    assert get_embedder_id(EmbedderConfig.model_validate(azure))
    managed = {**azure, "connection": {"identity": "managed"}}
    with pytest.raises(ConfigurationError, match=r"azure\.identity"):
        get_embedder_id(EmbedderConfig.model_validate(managed))


def test_every_batch_price_is_half() -> None:
    prices = [
        model.price
        for provider in PROVIDERS.values()
        if isinstance(provider.embedding, RemoteEmbedding)
        for model in provider.embedding.models.values()
        if model.price is not None and model.price.batch_per_million is not None
    ]
    assert len(prices) == 4
    for price in prices:
        assert price.batch_per_million == pytest.approx(price.per_million / 2)


def test_a_model_that_is_not_listed_has_no_price_rather_than_a_price_of_zero() -> None:
    assert get_provider("openai-compatible").find_embedding_price("text-embedding-3-small") is None
    assert get_provider("openai").find_embedding_price("text-embedding-ada-002") is None
    assert get_provider("anthropic").find_embedding_price("any") is None
    assert get_provider("local").find_embedding_price("any") == FREE


def test_a_configuration_takes_the_providers_there_are() -> None:
    kinds = {"embedding": EmbedderConfig, "chat": ChatModelConfig}
    for kind, config in kinds.items():
        schema = config.model_json_schema()["properties"]["provider"]
        taken = {*schema.get("enum", ()), *schema.get("anyOf", [{}])[0].get("enum", ())}
        offering = {name for name, provider in PROVIDERS.items() if getattr(provider, kind)}
        assert taken - {"auto"} == offering


def test_keys_are_stored_for_providers_over_the_network_and_for_rerankers() -> None:
    remote = {"openai", "gemini", "azure", "vertex", "bedrock", "voyage", "cohere"}
    assert set(PURPOSES) == remote | {"ollama", "vllm", "openai-compatible", "rerank"}


def test_auto_chooses_between_providers_with_a_server_of_their_own() -> None:
    assert list(list_auto_embeddings()) == ["openai", "gemini"]
    for provider in PROVIDERS.values():
        assert set(provider.embeddings_of) <= list_auto_embeddings().keys()


def test_a_provider_that_is_not_known_is_named_with_those_that_are() -> None:
    with pytest.raises(ConfigurationError, match="openia") as caught:
        get_provider("openia")
    assert "openai" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("chat_model", "name"),
    [
        ("gpt-4o", "openai"),
        ("gpt-4o-mini", "openai"),
        ("GPT-5", "openai"),
        ("o3", "openai"),
        ("o4-mini", "openai"),
        ("chatgpt-4o-latest", "openai"),
        ("azure/gpt-4.1", "openai"),
        ("openai/o3-mini", "openai"),
        ("claude-3-5-sonnet", "anthropic"),
        ("claude-opus-4-1-20250805", "anthropic"),
        ("anthropic/claude-3.5-sonnet", "anthropic"),
        ("openrouter/anthropic/claude-sonnet-4", "anthropic"),
        ("us.anthropic.claude-3-5-haiku-20241022-v1:0", "anthropic"),
        ("gemini-2.5-flash", "gemini"),
        ("gemini-1.5-pro", "gemini"),
        ("models/gemini-2.5-pro", "gemini"),
        ("vertex_ai/gemini-2.0-flash", "gemini"),
        ("gpt-oss-120b", None),
        ("groq/openai/gpt-oss-20b", None),
        ("llama3.3:70b", None),
        ("mistral-large", None),
        ("phi-4", None),
        ("solo3", None),
        ("", None),
        (None, None),
    ],
)
def test_a_chat_models_name_names_a_provider(chat_model: str | None, name: str | None) -> None:
    provider = find_chat_provider(chat_model)
    assert (provider.name if provider else None) == name


_OPEN = """
import asyncio, sys
from importlib import import_module
from pydantic import SecretStr
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.factory import build_remote_model
from rag_assets.models.transport import http_client

config = EmbedderConfig.model_validate_json(sys.argv[1])
import_module(config.offer.module)
endpoint = config.offer.endpoint(build_remote_model(config), None, PrivateEndpoints())
package = config.offer.module.split(".")[0]
before = set(sys.modules)

async def open_sdk():
    endpoint._open_sdk(SecretStr("AKIDEXAMPLE:secret"), endpoint._build_http_client())

asyncio.run(open_sdk())
print(*(name for name in set(sys.modules) - before if name.split(".")[0] == package))
"""


@pytest.mark.parametrize(
    ("provider", "connection"),
    [("cohere", None), ("voyage", None), ("openai", None), ("bedrock", {"region": "eu-central-1"})],
)
def test_a_loaded_sdk_is_opened_without_further_imports(
    provider: str, connection: dict[str, str] | None
) -> None:
    config = json.dumps({"provider": provider, "connection": connection})
    command = [sys.executable, "-c", _OPEN, config]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.stdout.strip(), ran.returncode) == ("", 0), ran.stderr
