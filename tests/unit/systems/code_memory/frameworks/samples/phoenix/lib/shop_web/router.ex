defmodule ShopWeb.Router do
  use ShopWeb, :router

  pipeline :api do
    plug :accepts, ["json"]
  end

  scope "/api", ShopWeb do
    pipe_through :api

    get "/orders/:id", OrderController, :show
    resources "/carts", CartController, only: [:index, :create]
  end
end
