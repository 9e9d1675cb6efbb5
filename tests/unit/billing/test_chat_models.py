import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from rag_assets.billing.chat_models import (
    BilledChat,
    ChatSpending,
    find_chat_model,
    find_chat_price,
)
from rag_assets.common.errors import (
    CapReached,
    ChatFailed,
    ChatRefused,
    ChatTimeout,
    ConfigurationError,
    NoChatModel,
    NoProviderKey,
    RagAssetsError,
)
from rag_assets.models.chat import Completion, estimate_input_tokens
from rag_assets.models.prices import ChatPrice
from rag_assets.storage.catalog.accounts.usage import SpendingTotals, Usage
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.tenants.model import CapsConfig, Tenant

OWN = {"model": "llama", "provider": "openai-compatible", "base_url": "https://ai.example.org/v1"}


def tenant(chat_model: Any, **more: Any) -> Tenant:
    return Tenant.from_config({"id": "acme", "chat_model": chat_model, **more})


@pytest.mark.parametrize(
    ("chat_model", "provider"),
    [
        ("gpt-4.1-mini", "openai"),
        ("o4-mini", "openai"),
        ("models/gemini-2.5-flash", "gemini"),
        ({"model": "gemini-2.5-pro"}, "gemini"),
        ({"model": "my-gpt", "provider": "openai"}, "openai"),
        (OWN, "openai-compatible"),
    ],
)
def test_a_models_name_or_a_setting_names_the_provider(chat_model: Any, provider: str) -> None:
    config, found, _ = find_chat_model(tenant(chat_model))
    assert (found.name, bool(config.model)) == (provider, True)


@pytest.mark.parametrize("chat_model", [None, "claude-3-5-haiku-latest", "llama"])
def test_an_unusable_chat_model_is_refused_with_the_remedy(chat_model: str | None) -> None:
    with pytest.raises(NoChatModel) as caught:
        find_chat_model(tenant(chat_model))
    assert "chat_model" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("chat_model", "where"),
    [
        ({"model": "llama", "provider": "openai-compatible"}, "needs a base_url"),
        ({"model": "llama", "base_url": "https://ai.example.org"}, "set the provider"),
        ({**OWN, "base_url": "https://u:secret@ai.example.org"}, "a user or a password"),
        ({"model": "gpt-5", "provider": "anthropic"}, "chat_model.provider"),
        ({"model": "gpt-5", "seconds": 61}, "chat_model.seconds"),
        ({"model": "gpt-5", "prices": {"input_per_million": 1}}, "output_per_million"),
        ({"provider": "openai"}, "chat_model.model"),
        ("two words", "chat_model.model"),
    ],
)
def test_what_is_not_usable_is_named(chat_model: Any, where: str) -> None:
    with pytest.raises(ConfigurationError, match=where) as caught:
        tenant(chat_model)
    assert "secret" not in caught.value.advice


def test_a_key_is_named_and_never_written_down() -> None:
    with pytest.raises(ConfigurationError, match=r"chat_model\.api_key") as caught:
        tenant({"model": "gpt-5", "api_key": "sk-literal"})
    assert "sk-literal" not in caught.value.advice
    assert tenant({"model": "gpt-5", "api_key": "$NAME"}).chat_model is not None


def test_the_price_is_the_listed_one_at_the_providers_own_server_alone() -> None:
    def price(**config: Any) -> float | None:
        found = find_chat_price(*find_chat_model(tenant(config))[:2])
        return None if found is None else found.compute_cost(1_000_000, 1_000_000)

    assert price(model="gpt-4.1-mini") == pytest.approx(2.0)
    assert price(model="models/gemini-2.5-flash") == pytest.approx(2.8)
    assert price(model="gpt-9") is None
    elsewhere = {"model": "gpt-4.1-mini", "provider": "openai", "base_url": "https://a.example"}
    assert price(**elsewhere) is None
    said = {"input_per_million": 1.0, "output_per_million": 2.0}
    assert price(**elsewhere, prices=said) == pytest.approx(3.0)


REF = TenantRef("acme", 1)
PRICE = ChatPrice(input_per_million=1.0, output_per_million=1_000.0)
MOST = PRICE.compute_cost(estimate_input_tokens("Be short.", "What?"), 100)


class Books:
    """Usage in memory."""

    def __init__(self, spent: float = 0.0, error: Exception | None = None) -> None:
        self.cost = spent
        self.used: list[Usage] = []
        self.error = error

    def read_spending(self, tenant_id: str, day: object) -> SpendingTotals:
        return SpendingTotals(0.0, self.cost, self.cost)

    def add(self, ref: TenantRef, provider: str, model: str, used: Usage) -> None:
        assert (ref, provider, model) == (REF, "openai", "m")
        if self.error is not None:
            raise self.error
        self.used.append(used)
        self.cost += used.cost


class Model:
    """A model that writes when it is allowed to, or fails."""

    def __init__(self, outcome: Completion | Exception, at_once: int = 1) -> None:
        self.outcome = outcome
        self.asked = 0
        self.together = asyncio.Barrier(at_once)

    async def complete(
        self, instructions: str, prompt: str, *, max_tokens: int, seconds: float
    ) -> Completion:
        self.asked += 1
        await self.together.wait()
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    async def close(self) -> None:
        """Do nothing."""


def paid(
    books: Books, model: Model, price: ChatPrice | None = PRICE, **caps: float
) -> tuple[BilledChat, ChatSpending]:
    batches = SimpleNamespace(open_cost=lambda tenant: 0.0)
    catalog: Any = SimpleNamespace(usage=books, batches=batches)
    spending = ChatSpending(catalog)
    tenant = Tenant(id="acme", caps=CapsConfig(**caps))
    chat = BilledChat(model, spending, REF, tenant, provider="openai", name="m", price=price)
    return chat, spending


def ask(chat: BilledChat, times: int = 1) -> list[Completion | BaseException]:
    async def all_of_them() -> list[Completion | BaseException]:
        call = partial(chat.complete, "Be short.", "What?", max_tokens=100, seconds=5.0)
        return await asyncio.gather(*(call() for _ in range(times)), return_exceptions=True)

    return asyncio.run(all_of_them())


def test_input_and_output_tokens_are_recorded_at_their_prices() -> None:
    books = Books()
    chat, _ = paid(books, Model(Completion("Yes.", 1_000, 10, requests=2)))
    ask(chat)
    [used] = books.used
    assert (used.tokens, used.output_tokens, used.requests, used.retries) == (1_010, 10, 2, 1)
    assert used.cost == pytest.approx(0.001 + 0.01)
    assert used.unpriced_tokens == 0


def test_without_a_price_tokens_are_counted_as_unpriced() -> None:
    books = Books()
    chat, _ = paid(books, Model(Completion("Yes.", 20, 3)), None)
    ask(chat)
    assert [(used.unpriced_tokens, used.known_cost) for used in books.used] == [(23, None)]


def test_an_answer_that_could_exceed_a_cap_is_not_requested() -> None:
    for caps in ({"per_day": MOST * 0.99}, {"per_month": MOST * 0.99}):
        model = Model(Completion("Yes.", 1, 1))
        chat, _ = paid(Books(), model, **caps)
        [refused] = ask(chat)
        assert isinstance(refused, CapReached)
        assert "caps.per_" in refused.advice
        assert refused.until is not None
        assert model.asked == 0
    chat, _ = paid(Books(), Model(Completion("Yes.", 1, 1)), per_day=MOST * 1.01, per_run=0.0)
    assert isinstance(ask(chat)[0], Completion)


def test_answers_that_are_written_at_once_break_no_cap_together() -> None:
    # Room for three at their most; they are under way together, so the others are refused.
    model = Model(Completion("Yes.", 5, 100), at_once=3)
    books = Books()
    chat, _ = paid(books, model, per_day=3.5 * MOST)
    ended = ask(chat, 6)
    assert sum(isinstance(one, Completion) for one in ended) == model.asked == 3
    assert sum(isinstance(one, CapReached) for one in ended) == 3
    assert books.cost <= 3.5 * MOST


def test_the_unused_reservation_of_an_answer_may_be_spent_again() -> None:
    books = Books()
    chat, _ = paid(books, Model(Completion("Yes.", 1, 1)), per_day=1.5 * MOST)
    assert all(isinstance(ask(chat)[0], Completion) for _ in range(5))
    assert len(books.used) == 5


@pytest.mark.parametrize(
    ("error", "requests", "paid_for"),
    [
        (ChatTimeout("late"), 1, True),
        (ChatFailed("malformed"), 1, True),
        (ChatRefused("refused"), 1, False),
        (NoProviderKey("none"), 0, False),
    ],
)
def test_a_failure_costs_its_input(error: RagAssetsError, requests: int, paid_for: bool) -> None:
    books = Books()
    chat, spending = paid(books, Model(error), per_day=1.5 * MOST)
    assert ask(chat) == [error]
    assert sum(used.requests for used in books.used) == requests
    assert (sum(used.tokens for used in books.used) > 0) == paid_for
    assert spending._in_progress == {}


def test_a_cancelled_caller_leaves_nothing_reserved() -> None:
    model = Model(Completion("Yes.", 1, 1), at_once=2)  # waits for another, who never comes
    for moment in (0, 0.05):
        chat, spending = paid(Books(), model, per_day=MOST)

        async def given_up(chat: BilledChat = chat, moment: float = moment) -> None:
            answer = chat.complete("Be short.", "What?", max_tokens=100, seconds=5.0)
            asking = asyncio.ensure_future(answer)
            await asyncio.sleep(moment)
            asking.cancel()
            await asyncio.wait([asking])
            await asyncio.sleep(0.05)

        asyncio.run(given_up())
        assert spending._in_progress == {}


def test_an_answer_is_not_lost_when_its_usage_cannot_be_recorded() -> None:
    chat, spending = paid(Books(error=RuntimeError("no")), Model(Completion("Yes.", 1, 1)))
    assert isinstance(ask(chat)[0], Completion)
    assert spending._in_progress == {}
