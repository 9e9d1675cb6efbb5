from fastapi import APIRouter

router = APIRouter()


@router.get("")
async def list_articles():
    return []


@router.put("/{slug:path}", name="articles:update")
async def update_article(slug: str):
    return {}
