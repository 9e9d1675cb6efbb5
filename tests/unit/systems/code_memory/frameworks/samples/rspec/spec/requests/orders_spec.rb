RSpec.describe 'Orders' do
  it 'lists' do
    get '/orders', params: { page: 2 }
  end
end
