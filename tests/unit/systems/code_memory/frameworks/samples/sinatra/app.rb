require 'sinatra'

get '/' do
  'Welcome'
end

post '/notes/:id' do
  params[:id]
end

configure { set :port, 8080 }
