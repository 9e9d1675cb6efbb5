"""A client of the HTTP service, for programs elsewhere: blocking and asynchronous.

Belongs here: requests and answers as types, errors, retries. Does not: anything that opens a
store; importing this takes no more than an HTTP client does.
"""

from rag_assets.client.async_client import AsyncClient
from rag_assets.client.blocking_client import Client
from rag_assets.retrieval.model import Filters, Question

__all__ = ["AsyncClient", "Client", "Filters", "Question"]
