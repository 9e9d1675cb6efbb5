defmodule ShopWeb.API.OrderController do
  def show(conn, _), do: conn
end
