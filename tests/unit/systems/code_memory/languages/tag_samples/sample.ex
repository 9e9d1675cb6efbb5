defmodule Shop.Orders do
  alias Shop.Repo
  import Ecto.Query

  @max_lines 10

  def create(attrs) do
    attrs
    |> changeset()
    |> Repo.insert()
  end

  defp changeset(attrs), do: Order.changeset(attrs)

  defmodule Line do
    defstruct [:amount]
  end
end
