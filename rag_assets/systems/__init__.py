"""Systems: what the chain is used for, each a folder that plugs into it.

Belongs here: `base` (the value that describes a system), `registry` (finds the installed ones), and
a package for each system of ours, with everything that only it needs. Does not: what two systems
share, which belongs to the core. The core imports `base` and `registry` and no system.
"""
