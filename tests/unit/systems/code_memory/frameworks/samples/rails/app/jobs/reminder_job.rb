class ReminderJob < ApplicationJob
  def perform(order)
    order.remind
  end
end
