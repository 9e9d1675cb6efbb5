from shop import celery


@celery.task(bind=True)
def clean_up(self): ...
