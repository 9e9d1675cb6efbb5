from celery import shared_task


@shared_task
def clean_up(): ...


class CreateOrderRequest: ...


class Price: ...
