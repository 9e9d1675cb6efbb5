defmodule ShopWeb.OrderController do
  def show(conn, _), do: conn
end
