from flask import Blueprint

bp = Blueprint("orders", __name__)


@bp.route("/<int:order_id>", methods=["GET", "DELETE"])
def order(order_id):
    return {}


@bp.post("/")
def create_order():
    return {}
