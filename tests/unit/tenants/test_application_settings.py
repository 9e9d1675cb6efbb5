from typing import Any

import pytest

from rag_assets.tenants.application_settings import (
    NO_SETTINGS,
    ApplicationSettings,
    find_settled_embedder,
    find_wanted_embedder,
    is_pending,
    overlay_settings,
)
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import get_configured_embedder

LOCAL: dict[str, Any] = {"id": "a", "embedder": {"provider": "local"}}
LARGE = {"provider": "openai", "model": "text-embedding-3-large", "dimensions": 3072, "price": 1}


def test_without_settings_the_operators_configuration_is_in_force() -> None:
    assert overlay_settings(LOCAL, NO_SETTINGS) == LOCAL
    assert find_wanted_embedder(NO_SETTINGS, LARGE) is None
    assert not is_pending(NO_SETTINGS, LARGE)


def test_another_model_of_the_same_provider_takes_nothing_of_the_former_ones() -> None:
    small = ApplicationSettings(embedding_model="text-embedding-3-small")
    wanted = find_wanted_embedder(small, LARGE)
    expected = {"provider": "openai", "model": "text-embedding-3-small", "dimensions": None}
    assert wanted == expected


def test_dimensions_alone_keep_the_model() -> None:
    wanted = find_wanted_embedder(ApplicationSettings(dimensions=256), LARGE)
    assert wanted == {**LARGE, "dimensions": 256}


@pytest.mark.parametrize("provider", ["localai", "ollama"])
def test_servers_of_the_people_speak_openais_interface(provider: Any) -> None:
    settings = ApplicationSettings(
        provider=provider, embedding_model="e5-small", base_url="http://127.0.0.1:11434/v1",
        dimensions=384,
    )  # fmt: skip
    wanted = find_wanted_embedder(settings, LARGE)
    config = overlay_settings(LOCAL, ApplicationSettings(embedder=wanted))
    embedder = Tenant.from_config(config).embedder
    assert (embedder.provider, embedder.model) == ("openai-compatible", "e5-small")
    assert (embedder.base_url, embedder.dimensions) == ("http://127.0.0.1:11434/v1", 384)


def test_a_model_is_in_force_once_it_was_taken() -> None:
    config = {"id": "a", "embedder": {**LARGE, "price": {"per_million": 1}}}
    operators = get_configured_embedder(config)
    settings = ApplicationSettings(provider="local")
    assert is_pending(settings, operators)
    assert overlay_settings(config, settings) == config
    embedder = find_wanted_embedder(settings, operators)
    taken = ApplicationSettings(provider="local", embedder=embedder)
    assert not is_pending(taken, operators)
    assert Tenant.from_config(overlay_settings(config, taken)).embedder.provider == "local"
    # Back to the operator's is a change of model like any other.
    assert is_pending(ApplicationSettings(embedder=taken.embedder), operators)


def test_a_model_that_the_operator_changes_is_in_force_if_it_makes_the_same_vectors() -> None:
    def is_same(one: Any, other: Any) -> bool:
        return bool(one["model"] == other["model"])

    dearer, other = {**LARGE, "price": 2}, {**LARGE, "model": "text-embedding-3-small"}
    settled = find_settled_embedder(NO_SETTINGS, LARGE, dearer, is_same=is_same)
    assert settled is None, "the operator's, whatever it is"
    kept = find_settled_embedder(NO_SETTINGS, LARGE, other, is_same=is_same)
    assert kept == LARGE
    waiting = ApplicationSettings(embedder=kept)
    assert is_pending(waiting, other)
    # A third one changes nothing, and the way back ends it.
    third = {**LARGE, "model": "ada"}
    assert find_settled_embedder(waiting, other, third, is_same=is_same) == LARGE
    assert find_settled_embedder(waiting, third, dearer, is_same=is_same) is None
    # A model that an application named, with the operator's other settings.
    own = ApplicationSettings(dimensions=256, embedder={**LARGE, "dimensions": 256})
    settled = find_settled_embedder(own, LARGE, dearer, is_same=is_same)
    assert settled == {**dearer, "dimensions": 256}
    assert find_settled_embedder(own, LARGE, other, is_same=is_same) == own.embedder
