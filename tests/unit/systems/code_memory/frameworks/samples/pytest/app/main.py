from app.core.config import settings
from app.routes import orders
from fastapi import FastAPI

app = FastAPI()
app.include_router(orders.router, prefix=settings.API_V1_STR)
