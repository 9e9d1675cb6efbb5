from app.paths import PATHS
from fastapi import APIRouter

router = APIRouter(prefix="/users")


@router.api_route("/{user_id}", methods=["GET", "HEAD"])
async def show_user(user_id: int):
    return {}


@router.post(PATHS["login"])
async def login():
    return {}
