"""A small shop."""

from shop.models import Invoice as Bill

__all__ = ["Bill"]
