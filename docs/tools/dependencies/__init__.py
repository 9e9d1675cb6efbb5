"""The project's dependencies: locked packages, jars and models, with their licences.

`make audit`, docs/dependencies.md and the bill of materials are built from it.
"""
