"""Plugins: the interface that a system implements, and the registry that finds systems.

Belongs here: `system` (the description of a system) and `registry` (the installed systems, found by
their entry points). Does not belong here: anything that a system does. Every package of the core
may import this package; it imports only errors.
"""
