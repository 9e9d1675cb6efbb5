module Api
  class ArticlesController < ApplicationController
    def index; end

    def show; end

    def destroy; end
  end
end
