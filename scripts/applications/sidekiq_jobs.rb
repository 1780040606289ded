# Sidekiq's queues: sidekiq_jobs.rb PORT. Exit status: failed checks.
require_relative 'sidekiq_common'

$failed = 0

def check(is_right, what)
  puts "#{is_right ? 'ok  ' : 'FAIL'} #{what}"
  $failed += 1 unless is_right
end

# Before anybody works: what is urgent comes first all the same.
5.times { |n| Work.set(queue: 'low').perform_async("low#{n}") }
5.times { |n| Work.set(queue: 'high').perform_async("high#{n}") }
check(Sidekiq::Queue.all.to_h { |it| [it.name, it.size] } == { 'high' => 5, 'low' => 5 }, 'queues')
process = work('-c', '1', '-q', 'high', '-q', 'low')
within(20) { ran.size == 10 }
ordered = %w[high low].flat_map { |queue| (0..4).map { |n| "work #{queue}#{n}" } }
check(ran.keys == ordered, 'strict order')
stop(process)

process = work('-c', '5', '-q', 'default,3', '-q', 'bulk')
begin
  jobs = (0...300).map { |n| Work.perform_async(n) }
  check(jobs.uniq.size == 300, '300 jobs have names')
  bulk = Sidekiq::Client.push_bulk('class' => Work, 'queue' => 'bulk',
                                   'args' => (1000...1500).map { |n| [n] })
  check(bulk.size == 500, '500 jobs at once')
  soon = Time.now + 2
  Work.perform_at(soon, 'at')
  Work.perform_in(3600, 'never')
  canceled = Work.perform_in(3600, 'canceled')
  TwiceWrong.perform_async(1)
  hopeless = Hopeless.perform_async(1)

  check(within(30) { (0...300).all? { |n| ran["work #{n}"] == 1 } }, 'the 300 ran once')
  check(within(30) { (1000...1500).all? { |n| ran["work #{n}"] == 1 } }, 'the 500 ran once')
  check(within(20) { ran['work at'] == 1 } && Time.now >= soon, 'a job of later ran, and not before')
  check(within(20) { ran['twice-wrong 1'] == 3 }, 'a job was retried until it worked')

  scheduled = Sidekiq::ScheduledSet.new
  check(scheduled.size == 2, 'two wait for their time')
  check(scheduled.find_job(canceled).delete && scheduled.size == 1, 'one is canceled')
  check(scheduled.map { |job| job.args } == [['never']], 'the other one stays')

  dead = Sidekiq::DeadSet.new
  check(within(20) { dead.size == 1 } && dead.first.jid == hopeless, 'one is dead')
  check(dead.first.item['error_message'] == 'on purpose', 'and says why')
  dead.first.retry
  check(within(20) { ran['hopeless 1'] == 2 }, 'it ran again')

  # A process reports every five seconds.
  counted = within(20) { Sidekiq::Stats.new.then { |it| it.processed == 816 && it.failed == 4 } }
  check(counted, "statistics: #{Sidekiq::Stats.new.processed}, #{Sidekiq::Stats.new.failed}")
  check(Sidekiq::Stats::History.new(1).processed.values == [816], 'those of today')

  processes = Sidekiq::ProcessSet.new
  check(processes.size == 1 && processes.first['concurrency'] == 5, 'one process works')
  processes.first.quiet!
  check(within(30) { Sidekiq::ProcessSet.new.first&.stopping? }, 'it is told to take no more')
  Work.perform_async('late')
  sleep 1
  check(Sidekiq::Queue.new.size == 1 && ran['work late'].nil?, 'nor does it')
  check(Sidekiq::Queue.new.first.args == ['late'], 'what waits can be seen')
  Sidekiq::Queue.new.clear
  check(Sidekiq::Queue.new.size.zero?, 'a queue is emptied')
ensure
  stop(process)
end
check(Sidekiq::ProcessSet.new.size.zero?, 'the process has said goodbye')
exit $failed
