"""The panel: web pages for the people of a project, served at /panel next to the API.

What belongs here: the frame of all pages, signing in, sessions, their protection, and pages that
several systems share. What does not: the content of one system's pages, which the system plugs in
(see `frame`).
"""
