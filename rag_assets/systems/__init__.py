"""Systems: the uses of the pipeline; each is a folder that plugs into it.

What belongs here: a package for each of the project's systems, with everything that only this
system needs. What does not: code that two systems share, which belongs to the core. The core
imports no system; `rag_assets.plugins` finds them.
"""
