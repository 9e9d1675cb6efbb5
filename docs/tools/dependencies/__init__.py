"""The dependencies of the project: locked packages, jars and the model, with their licences.

`make audit` uses all of this; the page docs/dependencies.md and the bill of materials come from it.
"""
