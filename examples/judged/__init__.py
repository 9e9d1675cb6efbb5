"""A judged set: documents, questions, and which passages answer them how well."""
