"""A judged set: documents, questions, and grades of the passages that answer them."""
