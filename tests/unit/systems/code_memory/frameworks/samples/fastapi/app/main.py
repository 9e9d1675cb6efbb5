from app.routes import articles
from app.routes.users import router as users_router
from fastapi import FastAPI

app = FastAPI()
app.include_router(articles.router, prefix="/articles", tags=["articles"])
app.include_router(users_router, prefix="/api")


@app.get("/health")
async def health():
    return {}
