"""The panel: pages for a project's people, served beside the API at /panel.

Belongs here: the frame of all pages, signing in, sessions, what protects them, and pages that
several systems share. Does not: what the pages of one system show and do, which the system plugs in
(see `frame`).
"""
