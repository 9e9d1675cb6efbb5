"""Work on the facts of indexed texts: labels, derived documents, comparison and repair."""
