"""Judged sentences about passages, and the accuracy of the citation check on them."""
