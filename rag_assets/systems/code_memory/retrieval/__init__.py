"""Search in source code: names in questions, walks along relations, and the steps of a search."""
