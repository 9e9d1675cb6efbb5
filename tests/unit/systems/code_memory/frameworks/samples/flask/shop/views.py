from flask import Blueprint
from flask.views import MethodView
from flask_restful import Api, Resource

blp = Blueprint("carts", __name__, url_prefix="/carts")
api = Api(blp)


@blp.route("/<int:cart_id>")
class CartView(MethodView):
    def get(self, cart_id): ...

    def delete(self, cart_id): ...

    def total(self): ...


class ItemView(MethodView):
    def get(self): ...


blp.add_url_rule("/items", view_func=ItemView.as_view("items"), methods=["GET"])


class Coupon(Resource):
    def get(self, coupon_id): ...


api.add_resource(Coupon, "/coupons/<coupon_id>")
