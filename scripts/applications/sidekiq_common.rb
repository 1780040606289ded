# What the programs for Sidekiq share: a process that works, and what it has done.
require 'sidekiq'
require 'sidekiq/api'
require 'tmpdir'

PORT = Integer(ARGV.fetch(0))
ENV['REDIS_URL'] = "redis://127.0.0.1:#{PORT}/0"
ENV['RAN'] = File.join(Dir.mktmpdir, 'ran')
File.write(ENV['RAN'], '')
# No request is sent again behind our back: then it could not be said what was acknowledged.
Sidekiq.configure_client do |config|
  config.redis = { url: ENV['REDIS_URL'], reconnect_attempts: 0 }
end
require_relative 'sidekiq_workers'

# Starts a process that works.
def work(*arguments)
  command = ['sidekiq', '-r', File.join(__dir__, 'sidekiq_workers.rb'), *arguments]
  spawn({ 'BUNDLE_GEMFILE' => nil }, *command, out: File::NULL, err: File::NULL)
end

def stop(process)
  Process.kill('TERM', process)
  Process.wait(process)
end

# What ran, and how often.
def ran
  File.readlines(ENV['RAN'], chomp: true).tally
end

# Waits for something to become true.
def within(seconds)
  finish = Time.now + seconds
  until yield
    return false if Time.now > finish
    sleep 0.05
  end
  true
end
