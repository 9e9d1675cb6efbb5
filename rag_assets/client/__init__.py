"""Blocking and asynchronous clients of the HTTP service, for other programs.

What belongs here: typed requests and answers, errors, retries. What does not: anything that opens a
store. Importing this package needs only the dependencies of an HTTP client.
"""

from rag_assets.client.clients import AsyncClient, Client
from rag_assets.search.model import Filters, Question

__all__ = ["AsyncClient", "Client", "Filters", "Question"]
