"""Routes and columns of applications of Django, beside those that Django has of them."""
