from app.core.config import settings


class TestOrders:
    def test_create(self, client):
        assert client.post(f"{settings.API_V1_STR}/orders", json={}).status_code == 201

    def test_show(self, client, order):
        assert client.get(f"/api/v1/orders/{order.id}").status_code == 200
        assert client.request("GET", "http://test/api/v1/orders/7?full=1").status_code == 200


def test_export(client):
    client.get("/api/v1/orders/export")
    client.get(client.url_for("show"))
    {}.get("/nowhere")
