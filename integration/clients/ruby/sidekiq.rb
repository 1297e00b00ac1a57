# One client of Sidekiq, by commands; see ../go/remote. Sidekiq's workers load it, too.

require "sidekiq"
require "sidekiq/api"
require "socket"
require "securerandom"

Redis.sadd_returns_boolean = false # Sidekiq 6.4 relies on what redis-rb 4.8 warns of

URL = "redis://#{ENV.fetch("PROXY_HOST")}:#{ENV.fetch("PROXY_PORT")}/0".freeze
RELEASE = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end'.freeze
SOON = 20 # s, within which what must happen happens, on a busy machine

Sidekiq.configure_client { |config| config.redis = { url: URL } }
Sidekiq.configure_server do |config|
  config.redis = { url: URL, reconnect_attempts: 5, reconnect_delay: 0.2 }
  config.options[:poll_interval_average] = 1 # s, between looks for jobs whose time has come
end

# A job counts its beginnings and its ends.
class Job
  include Sidekiq::Worker

  def perform(task, lasts = 0, fails = 0)
    begun = Sidekiq.redis { |redis| redis.incr("begun:#{task}") }
    raise "again" if begun <= fails

    sleep lasts
    Sidekiq.redis { |redis| redis.incr("done:#{task}") }
  end
end

def count(what)
  Sidekiq.redis { |redis| redis.get(what) }.to_i
end

def wait_for(what)
  deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + SOON
  until yield
    raise "#{what}: not within #{SOON} s" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

    sleep 0.02
  end
end

def start_worker
  worker = spawn("sidekiq", "-r", __FILE__, "-c", "5", out: File::NULL, err: File::NULL)
  wait_for("a worker") { Sidekiq::ProcessSet.new.any? { |process| process["pid"] == worker } }
  worker
end

def stop_worker(worker)
  Process.kill(:TERM, worker)
  Process.wait(worker)
  abort "the worker ended with #{$?}" unless $?.success?
  nil
end

def restart_proxy
  control = TCPSocket.new("127.0.0.1", ENV.fetch("CONTROL_PORT"))
  control.puts("restart")
  answer = control.gets
  control.close
  raise answer unless answer == "ok\n"
end

# Uses all that it has, and returns what it has used.
def use
  worker = start_worker
  used = use_with(worker)
  worker = stop_worker(worker)
  raise "it did not end its job" unless count("done:last") == 1

  used
rescue StandardError
  Process.kill(:KILL, worker) if worker
  raise
end

def use_with(worker)
  used = []
  step = lambda do |what, &done|
    wait_for(what, &done)
    used << what
  end
  50.times { Job.perform_async("job") }
  step.call("jobs") { count("done:job") == 50 }
  Sidekiq::Client.push_bulk("class" => Job, "args" => [["bulk"]] * 1000)
  step.call("bulk") { count("done:bulk") == 1000 }
  Job.perform_in(1, "scheduled")
  step.call("scheduled jobs") { count("done:scheduled") == 1 }
  Job.perform_async("fails", 0, 1)
  wait_for("a failure") { Sidekiq::RetrySet.new.size == 1 }
  Sidekiq::RetrySet.new.retry_all
  step.call("retries") { count("done:fails") == 1 }
  Job.perform_async("long", 1)
  wait_for("the long job") { count("begun:long") == 1 }
  restart_proxy
  Job.perform_async("after")
  step.call("restart of the proxy while workers wait") { count("done:after") == 1 && count("done:long") == 1 }
  Job.perform_async("last", 1)
  wait_for("the last job") { count("begun:last") == 1 }
  raise "jobs began more than once" unless count("begun:long") == 1 && count("begun:job") == 50

  used.join(", ")
end

def serve
  redis = Redis.new(url: URL)
  locks = {}
  puts "ready #{Sidekiq::VERSION} data"
  while (line = $stdin.gets)
    verb, id, *words = line.split
    begin
      case verb
      when "lock"
        locks[id] = [words[0], SecureRandom.hex(16), words[1].to_i]
        puts "yes"
      when "acquire"
        name, token, ttl = locks[id]
        puts redis.set(name, token, nx: true, px: ttl) ? "yes" : "no"
      when "release"
        puts redis.eval(RELEASE, keys: [locks[id][0]], argv: [locks[id][1]]) == 1 ? "yes" : "no"
      when "data" then puts "used #{use}"
      end
    rescue StandardError => e
      puts "error #{e.class}: #{e.message}".tr("\r\n", " ")
    end
  end
end

$stdout.sync = true
serve unless Sidekiq.server?
