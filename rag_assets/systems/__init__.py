"""Systems: what the chain is used for, each a folder that plugs into it.

Belongs here: a package for each system of ours, with everything that only it needs. Does not: what
two systems share, which belongs to the core. The core imports no system; `rag_assets.plugins`
finds them.
"""
