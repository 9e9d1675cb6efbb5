defmodule Shop.Workers.Cleanup do
  use Oban.Worker

  def perform(job), do: job
end
