defmodule ShopWeb.Router do
  use ShopWeb, :router

  scope "/api", ShopWeb.API do
    get "/orders/:id", OrderController, :show
  end
end
