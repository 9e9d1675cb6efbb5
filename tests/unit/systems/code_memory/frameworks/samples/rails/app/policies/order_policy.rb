class OrderPolicy < ApplicationPolicy
  def show? = true
end
