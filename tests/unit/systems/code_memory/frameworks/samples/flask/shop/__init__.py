from flask import Flask

from shop import orders


def create_app():
    app = Flask(__name__)
    app.register_blueprint(orders.bp, url_prefix="/orders")
    app.add_url_rule("/", view_func=home)
    return app


def home():
    return "Welcome"
