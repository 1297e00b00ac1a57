# One client of redis-rb, by commands; see ../go/remote.

require "redis"
require "securerandom"

RELEASE = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end'.freeze
EXTEND = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end'.freeze

DOUBLE = 'return redis.call("incrby", KEYS[1], redis.call("get", KEYS[1]))'.freeze

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

def connect
  Redis.new(host: ENV.fetch("PROXY_HOST"), port: ENV.fetch("PROXY_PORT"), reconnect_attempts: 1)
end

# Uses everything else that the library has, and returns what it has used.
def use(redis, name, piped)
  used = []
  step = lambda do |what, got, wanted|
    raise "#{what}: #{got.inspect}" unless got == wanted

    used << what
  end
  text, number, fields, items = %w[text number fields items].map { |s| "#{name}:#{s}" }
  redis.mset(text, "one", number, 2)
  step.call("strings", redis.mget(text, number), %w[one 2])
  redis.hset(fields, "a", 1)
  step.call("hash", redis.hgetall(fields), { "a" => "1" })
  redis.rpush(items, %w[x y])
  step.call("list", redis.lrange(items, 0, -1), %w[x y])
  other = connect
  pusher = Thread.new { other.rpush("#{name}:queue", "z") }
  step.call("BLPOP", redis.blpop("#{name}:queue", timeout: 20), ["#{name}:queue", "z"])
  pusher.join
  replies = redis.watch(number) do
    redis.multi do |m|
      m.incr(number)
      m.hincrby(fields, "a", 1)
    end
  end
  step.call("WATCH, MULTI", replies, [3, 2])
  replies = redis.pipelined do |p|
    p.set(text, "two")
    p.set(piped, "t", nx: true, px: 30_000)
    p.get(text)
    p.del(piped)
  end
  step.call("pipeline", replies, ["OK", true, "two", 1])
  heard = nil
  other.subscribe("#{name}:news") do |on|
    on.subscribe { redis.publish("#{name}:news", "hello") }
    on.message do |_, message|
      heard = message
      other.unsubscribe
    end
  end
  step.call("pub/sub", heard, "hello")
  step.call("SCAN", redis.scan_each(match: "#{name}:*").to_a.uniq.sort, [fields, items, number, text])
  step.call("scripts", redis.eval(DOUBLE, keys: [number]), 6)
  other.close
  used.join(", ")
end

redis = connect
locks = {}
$stdout.sync = true
puts "ready #{Redis::VERSION} extends tokens data"
while (line = $stdin.gets)
  verb, id, *words = line.split
  begin
    if verb == "data"
      puts "used #{use(redis, id, words[0])}"
      next
    end
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
