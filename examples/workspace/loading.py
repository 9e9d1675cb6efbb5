"""Pushes the example's workspace through the service, as an application does."""

from __future__ import annotations

from collections import Counter

from examples.workspace.data import contents, rows
from rag_assets.client import Client
from rag_assets.client.workspace_operations import put_page


def load(client: Client) -> Counter[str]:
    """Put the tree, all records and the contents of files; return the outcomes.

    Args:
        client: of an admin of a workspace. What is there already stays as it is.

    Raises:
        ClientError: the service refuses something, or does not answer.
    """
    for page in rows("tree"):
        client.send(put_page(**page))
    outcomes = Counter(line.outcome for line in client.write_records(rows("records")).lines)
    for id_, content in contents().items():
        outcomes[client.put_record_content(id_, content).outcome] += 1
    return outcomes
