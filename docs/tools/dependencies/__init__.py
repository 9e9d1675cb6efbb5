"""What the project is made of besides itself: locked packages, jars and the model, their licences.

`make audit` uses all of this; the page docs/dependencies.md and the bill of materials come from it.
"""
