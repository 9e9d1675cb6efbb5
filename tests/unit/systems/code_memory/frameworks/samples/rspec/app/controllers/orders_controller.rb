class OrdersController < ApplicationController
  def index; end

  def update; end
end
