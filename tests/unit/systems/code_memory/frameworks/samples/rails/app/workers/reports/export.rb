module Reports
  class Export < ActiveJob::Base
  end

  class Cleanup
    include Sidekiq::Worker

    def perform; end
  end
end
