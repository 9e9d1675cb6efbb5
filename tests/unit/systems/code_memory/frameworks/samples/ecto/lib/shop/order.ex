defmodule Shop.Order do
  use Ecto.Schema

  schema "orders" do
    field :total, :decimal
  end
end
