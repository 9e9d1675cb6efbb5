"""Push the example into the workspace of RAG_ASSETS_URL and RAG_ASSETS_TOKEN.

python -m examples.workspace
"""

import sys

from examples.workspace.loading import load
from rag_assets.client import Client

if __name__ == "__main__":
    with Client.from_environment() as service:
        for outcome, count in load(service).items():
            sys.stdout.write(f"{outcome}: {count}\n")
