class OrderMailer < ApplicationMailer
  def paid; end
end
