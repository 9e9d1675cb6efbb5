from fastapi import APIRouter

router = APIRouter(prefix="/orders")


@router.get("/{order_id}")
def show(order_id: int):
    return {}


@router.post("/")
def create():
    return {}


@router.get("/export")
def export():
    return {}
