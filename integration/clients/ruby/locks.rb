# One client of redis-rb, by commands; see ../go/remote.

require "redis"
require "securerandom"

RELEASE = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end'.freeze
EXTEND = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end'.freeze

Lock = Struct.new(:redis, :name, :ttl, :token) do
  def acquire(wait)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC, :millisecond) + wait
    until redis.set(name, token, nx: true, px: ttl)
      return false if Process.clock_gettime(Process::CLOCK_MONOTONIC, :millisecond) >= deadline

      sleep 0.05
    end
    raise "GET tells another token" unless redis.get(name).b == token

    true
  end

  def release
    sha = redis.script(:load, RELEASE)
    redis.evalsha(sha, keys: [name], argv: [token]) == 1
  end

  def extend_to(ttl)
    redis.eval(EXTEND, keys: [name], argv: [token, ttl]) == 1
  end
end

redis = Redis.new(host: ENV.fetch("PROXY_HOST"), port: ENV.fetch("PROXY_PORT"), reconnect_attempts: 1)
locks = {}
$stdout.sync = true
puts "ready #{Redis::VERSION} extends tokens"
while (line = $stdin.gets)
  verb, id, *words = line.split
  begin
    yes =
      case verb
      when "lock"
        name, ttl, token = words
        locks[id] = Lock.new(redis, name, ttl.to_i, token == "-" ? SecureRandom.bytes(16) : [token[1..]].pack("H*"))
      when "acquire" then locks[id].acquire(words[0].to_i)
      when "release" then locks[id].release
      when "extend" then locks[id].extend_to(words[0].to_i)
      end
    puts yes ? "yes" : "no"
  rescue StandardError => e
    puts "error #{e.class}: #{e.message}".tr("\r\n", " ")
  end
end
