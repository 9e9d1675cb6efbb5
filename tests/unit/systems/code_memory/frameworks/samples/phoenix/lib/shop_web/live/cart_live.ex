defmodule ShopWeb.CartLive do
  def mount(params, session, socket), do: {:ok, socket}
end
