defmodule ShopWeb.OrderControllerTest do
  use ShopWeb.ConnCase

  test "shows an order", %{conn: conn} do
    conn = get(conn, "/api/orders/#{order.id}")
    assert conn |> get("/api/orders/1") |> json_response(200)
  end
end
