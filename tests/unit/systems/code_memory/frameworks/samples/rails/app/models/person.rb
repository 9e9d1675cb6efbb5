class Person < ApplicationRecord
  self.table_name = 'people'
end
