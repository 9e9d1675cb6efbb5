"""`python -m rag_assets.cli`."""

from rag_assets.cli import main

main()
