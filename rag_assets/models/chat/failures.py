"""Converts failures of a connection to a provider into errors of chat models."""

from __future__ import annotations

from rag_assets.common.errors import (
    ChatError,
    ChatFailed,
    ChatRefused,
    ChatUnavailable,
    InputRejected,
    KeyUnreadable,
    NoProviderKey,
    PromptRejected,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
)


def failure_of_chat(error: ProviderError, model: str) -> ChatError | NoProviderKey | KeyUnreadable:
    """Convert a connection's error into a chat model's error.

    Args:
        error: the error that the connection raised.
        model: provider and model, for the message.
    """
    if isinstance(error, NoProviderKey | KeyUnreadable):
        return error.with_traceback(None)
    failure: ChatError
    match error:
        case ProviderUnavailable():
            failure = ChatUnavailable(error.message, retry_after=error.retry_after)
        case ProviderRefused():
            hint = "raise it at the provider" if error.fault == "quota" else error.hint
            failure = ChatRefused(error.message, hint=hint, fault=error.fault)
        case InputRejected():
            failure = PromptRejected(
                f"{model} rejects the request",
                hint="it may be longer than the model reads: set a smaller token_budget or"
                " max_tokens",
            )
        case _:
            failure = ChatFailed(error.message)
    failure.requests = error.requests
    return failure
