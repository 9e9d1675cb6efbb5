class LineItem < ApplicationRecord
  belongs_to :order
end
