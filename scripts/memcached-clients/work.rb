# Work of dalli on a server: ruby work.rb PORT
require 'dalli'

def check(got, expected)
  raise "#{got.inspect} instead of #{expected.inspect}" unless got == expected
end

protocols = Dalli::VERSION.to_i < 4 ? %i[binary meta] : %i[meta]
protocols &= %i[binary] if Dalli::VERSION < '3.2'
protocols.each do |protocol|
  options = { namespace: "rb#{protocol}", expires_in: 100 }
  options[:protocol] = protocol unless protocol == :binary
  client = Dalli::Client.new("127.0.0.1:#{ARGV[0]}", options)
  client.set('a', { 'some' => [1, :symbol] })
  check client.get('a'), { 'some' => [1, :symbol] }
  check client.get('none'), nil
  check !!client.add('a', 1), false
  check !!client.replace('a', 2), true
  check !!client.cas('a') { |value| value + 1 }, true
  check client.get('a'), 3
  check client.get_cas('a')[0], 3
  check client.incr('n', 5, 100, 7), 7
  check client.incr('n', 5), 12
  check client.decr('n', 100), 0
  client.set('text', 'b', 100, raw: true)
  client.append('text', 'c')
  client.prepend('text', 'a')
  check client.get('text', raw: true), 'abc'
  check client.fetch('fetched', 100) { 'made' }, 'made'
  check client.fetch('fetched', 100) { raise 'made again' }, 'made'
  client.multi { 500.times { |n| client.set("m#{n}", n) } }
  check client.get_multi((0...500).map { |n| "m#{n}" }), (0...500).to_h { |n| ["m#{n}", n] }
  check !!client.touch('a', 50), true
  check !!client.delete('a'), true
  check !!client.delete('a'), false
  check client.stats.values.first['version'].to_s.empty?, false
  client.close
  puts "dalli #{Dalli::VERSION} #{protocol}: ok"
end
