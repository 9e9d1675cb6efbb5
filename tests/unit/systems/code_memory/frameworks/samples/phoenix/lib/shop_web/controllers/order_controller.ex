defmodule ShopWeb.OrderController do
  use ShopWeb, :controller

  def show(conn, %{"id" => id}) do
    json(conn, %{id: id})
  end
end
