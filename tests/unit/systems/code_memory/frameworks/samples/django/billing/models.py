from django.db import models


class Stamped(models.Model):
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True


class Customer(Stamped):
    name = models.CharField(max_length=80)


class Invoice(Stamped):
    customer = models.ForeignKey(Customer, models.PROTECT)

    class Meta:
        db_table = "invoices"


class Paid(Invoice):
    class Meta:
        proxy = True
