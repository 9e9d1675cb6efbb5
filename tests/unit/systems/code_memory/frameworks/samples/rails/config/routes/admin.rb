namespace :admin do
  resources :reports, only: :show
  get '/health' => 'health#show'
end
