"""The panel: pages for a project's people, served beside the API at /panel.

Belongs here: the frame of all pages, signing in, sessions, and what protects them. Does not: what
the pages of a system show and do, which the system plugs in (see `frame`).
"""
