require_relative "store"

module Shop
  MAX_LINES = 10

  # An order.
  class Order < ApplicationRecord
    include Priced
    belongs_to :customer

    def total(rates)
      krate = rates.load(self)
      krate.owners(conn).sum
      summed
    end

    def self.latest(count)
      Store::Query.new(count).run
    end
  end
end
