from django.dispatch import Signal

paid = Signal()
