"""Work on the facts of indexed texts: labels, derived documents, and repair of relations."""
