# The jobs of sidekiq_jobs.rb and sidekiq_crash.rb. RAN names the file in which each run leaves a
# line: what ran, and its argument.
require 'sidekiq'

# redis-rb announces what it will change one day at every call.
Redis.silence_deprecations = true

Sidekiq.configure_server do |config|
  config.redis = { url: ENV.fetch('REDIS_URL') }
  Sidekiq.options[:poll_interval_average] = 0.3
end

module Leaves
  def leave(what, argument)
    File.open(ENV.fetch('RAN'), 'a') { |file| file.syswrite("#{what} #{argument}\n") }
  end
end

class Work
  include Sidekiq::Worker
  include Leaves

  def perform(number)
    leave('work', number)
  end
end

class TwiceWrong
  include Sidekiq::Worker
  include Leaves
  sidekiq_options retry: 5
  sidekiq_retry_in { 1 }

  def perform(number)
    leave('twice-wrong', number)
    runs = File.readlines(ENV.fetch('RAN')).count("twice-wrong #{number}\n")
    raise 'on purpose' if runs < 3
  end
end

class Hopeless
  include Sidekiq::Worker
  include Leaves
  sidekiq_options retry: 0

  def perform(number)
    leave('hopeless', number)
    raise 'on purpose'
  end
end
