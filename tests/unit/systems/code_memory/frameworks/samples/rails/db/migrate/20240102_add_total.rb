class AddTotal < ActiveRecord::Migration[7.0]
  def up; end
end
