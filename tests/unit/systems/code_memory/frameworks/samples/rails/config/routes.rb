Rails.application.routes.draw do
  root to: 'home#index'
  get '/about' => 'pages#about'
  match '/search', to: 'search#show', via: %i[get post]

  namespace :api do
    resources :articles, only: [:index, :show, :destroy], param: :slug do
      resources :comments, only: :create
      member { post :favorite }
      get :feed, on: :collection
      delete :memory, action: :destroy, on: :member
    end
  end
  resource :profile, only: [:show]
  resources :authors, only: [] do
    resources :posts, only: [] do
      collection { get :drafts, controller: 'api/articles', action: :show }
    end
  end

  concern :commentable do
    resources :remarks, only: :index
  end
  resources :books, only: [], shallow: true do
    resources :pages, only: [:index, :show]
  end
  scope '/panel' do
    draw :admin
  end
end
