# Sidekiq adds and runs jobs for twelve seconds while somebody kills the server again and again:
# sidekiq_crash.rb PORT. Exit status 1 if more acknowledged jobs are lost than Sidekiq itself allows,
# or if one ran twice.
#
# Sidekiq takes a job by BRPOP: one whose reply is lost with the connection is gone, on every server.
# That can be no more than one for each of its threads and each kill.
require_relative 'sidekiq_common'

KILLS = 4
THREADS = 5

process = work('-c', THREADS.to_s)
acknowledged = []
unknown = 0
finish = Time.now + 12
number = 0
while Time.now < finish
  begin
    Work.perform_async(number)
    acknowledged << number
  rescue Redis::BaseError
    unknown += 1
    sleep 0.1
  end
  number += 1
  sleep 0.0005
end
left = nil
within(60) do
  left = Sidekiq::Queue.new.size
  left.zero?
rescue Redis::BaseError
  false
end
sleep 1
stop(process)
found = ran
lost = acknowledged.count { |n| found["work #{n}"].nil? }
twice = found.values.count { |runs| runs > 1 }
allowed = KILLS * THREADS
puts "#{acknowledged.size} acknowledged, #{unknown} unknown, #{lost} lost (at most #{allowed} may be), " \
     "#{twice} ran twice, #{left} left"
exit(lost <= allowed && twice.zero? && left&.zero? && acknowledged.size > 500 ? 0 : 1)
