"""The panel: pages for a project's people, served at /panel next to the API.

Belongs here: the frame of all pages, signing in, sessions, their protection, and pages that several
systems share. Does not: the content of one system's pages, which the system plugs in (see `frame`).
"""
