"""Search in source code: names in questions, walks along relations, and their steps."""
