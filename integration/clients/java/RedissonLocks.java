import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import org.redisson.Redisson;
import org.redisson.api.BatchOptions;
import org.redisson.api.RAtomicLong;
import org.redisson.api.RBatch;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RBucket;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RList;
import org.redisson.api.RLock;
import org.redisson.api.RMap;
import org.redisson.api.RMapCache;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RReliableTopic;
import org.redisson.api.RScript;
import org.redisson.api.RSemaphore;
import org.redisson.api.RTopic;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.LongCodec;
import org.redisson.config.Config;

/** The locks of Redisson. */
class RedissonLocks extends Library {
  static final long WATCHDOG_MS = 1_500;

  final BiFunction<RedissonClient, String, RLock> maker;

  RedissonLocks(String kind, BiFunction<RedissonClient, String, RLock> maker) {
    super("Redisson " + kind, "redisson");
    this.maker = maker;
    extended = false;
    reentrant = true;
    watchdogMs = WATCHDOG_MS;
  }

  public static void main(String[] args) throws Exception {
    List<Library> all = new ArrayList<>(List.of(
        new RedissonLocks("RLock", RedissonClient::getLock) {
          void more(Scenarios run) throws Exception {
            super.more(run);
            forced(run);
            refused(run);
          }

          boolean usesData() {
            return true;
          }
        },
        new RedissonLocks("RSpinLock", RedissonClient::getSpinLock),
        new RedissonLocks("RFairLock", RedissonClient::getFairLock),
        new RedissonLocks("RReadWriteLock", (c, name) -> c.getReadWriteLock(name).writeLock()) {
          void more(Scenarios run) throws Exception {
            super.more(run);
            shared(run);
          }
        },
        new RedissonLocks("MultiLock", (c, name) -> c.getMultiLock(c.getLock(name + ":a"), c.getLock(name + ":b"))) {
          long waitOf(long waitMs) {
            return waitMs == 0 ? -1 : waitMs; // with 0 it gives up after its first millisecond
          }
        }));
    if (has("getMultiLock", String.class, Collection.class)) {
      all.add(new RedissonLocks("FasterMultiLock",
          (c, name) -> (RLock) call(c, "getMultiLock", new Class<?>[] {String.class, Collection.class}, name, List.of("a", "b"))));
    }
    Scenarios.run(all.toArray(new Library[0]));
  }

  /** Says whether this version of Redisson has a way to make something. */
  static boolean has(String method, Class<?>... types) {
    try {
      RedissonClient.class.getMethod(method, types);
      return true;
    } catch (NoSuchMethodException e) {
      return false;
    }
  }

  static Object call(Object on, String method, Class<?>[] types, Object... args) {
    try {
      return RedissonClient.class.getMethod(method, types).invoke(on, args);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  long waitOf(long waitMs) {
    return waitMs;
  }

  /** Once is enough: the kinds of locks share all the rest. */
  boolean usesData() {
    return false;
  }

  Opened open() {
    Config config = new Config();
    config.setLockWatchdogTimeout(WATCHDOG_MS).setThreads(2).setNettyThreads(4);
    // With fewer idle ones, Redisson may send a command over a connection on which another waits, to one Redis, too.
    config.useSingleServer().setAddress("redis://" + HOST + ":" + PORT).setConnectionMinimumIdleSize(4)
        .setConnectionPoolSize(4).setSubscriptionConnectionMinimumIdleSize(1).setSubscriptionConnectionPoolSize(2);
    return new Opened(Redisson.create(config));
  }

  class Opened implements Client {
    final RedissonClient redisson;

    Opened(RedissonClient redisson) {
      this.redisson = redisson;
    }

    public Lock lock(String name, long ttlMs, byte[] token, boolean keep) {
      return new Kept(maker.apply(redisson, name), keep ? -1 : ttlMs);
    }

    public void data(Used used, String name, String piped) throws Exception {
      if (!usesData()) {
        throw new Scenarios.Absent();
      }
      use(redisson, used, name);
    }

    public void close() {
      redisson.shutdown(0, 1, TimeUnit.SECONDS);
    }
  }

  /** A lock with a lease, or, if that is -1, one that the watchdog keeps. */
  class Kept implements Lock {
    final RLock lock;
    final long leaseMs;

    Kept(RLock lock, long leaseMs) {
      this.lock = lock;
      this.leaseMs = leaseMs;
    }

    public boolean acquire(long waitMs) throws Exception {
      return lock.tryLock(waitOf(waitMs), leaseMs, TimeUnit.MILLISECONDS);
    }

    public boolean release() {
      try {
        lock.unlock();
        return true;
      } catch (IllegalMonitorStateException e) {
        return false;
      }
    }

    public boolean extend(long ttlMs) {
      throw new UnsupportedOperationException();
    }
  }

  static void use(RedissonClient redisson, Used used, String name) throws Exception {
    RBucket<String> bucket = redisson.getBucket(name + ":text");
    bucket.set("one", 100, TimeUnit.SECONDS);
    RAtomicLong number = redisson.getAtomicLong(name + ":number");
    used.step("RBucket, RAtomicLong", bucket.get() + number.addAndGet(2), "one2");
    RMap<String, Integer> map = redisson.getMap(name + ":fields");
    map.put("a", 1);
    used.step("RMap", map.readAllMap() + "" + map.fastPut("a", 2), "{a=1}false");
    RList<String> list = redisson.getList(name + ":items");
    list.addAll(List.of("x", "y"));
    used.step("RList", list.readAll(), List.of("x", "y"));
    RBlockingQueue<String> queue = redisson.getBlockingQueue(name + ":queue");
    CompletableFuture<String> polled = CompletableFuture.supplyAsync(() -> {
      try {
        return queue.poll(20, TimeUnit.SECONDS);
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    });
    queue.add("z");
    used.step("RBlockingQueue", polled.get(), "z");
    RBatch batch = redisson.createBatch(BatchOptions.defaults().executionMode(BatchOptions.ExecutionMode.IN_MEMORY_ATOMIC));
    batch.getBucket(name + ":text").setAsync("two");
    batch.getAtomicLong(name + ":number").incrementAndGetAsync();
    used.step("RBatch, atomic", batch.execute().getResponses().get(1), 3);
    batch = redisson.createBatch();
    batch.getBucket(name + ":text").getAsync();
    batch.getAtomicLong(name + ":number").incrementAndGetAsync();
    used.step("RBatch", batch.execute().getResponses(), List.of("two", 4));
    CompletableFuture<String> heard = new CompletableFuture<>();
    RTopic topic = redisson.getTopic(name + ":news");
    topic.addListener(String.class, (channel, message) -> heard.complete(message));
    topic.publish("hello");
    used.step("RTopic", heard.get(Scenarios.SOON, TimeUnit.MILLISECONDS), "hello");
    TreeSet<String> found = new TreeSet<>();
    redisson.getKeys().getKeysByPattern(name + ":*").forEach(found::add);
    used.step("RKeys", found, List.of(name + ":fields", name + ":items", name + ":number", name + ":text"));
    Object doubled = redisson.getScript(LongCodec.INSTANCE).eval(RScript.Mode.READ_WRITE, DOUBLE, RScript.ReturnType.VALUE,
        List.of(name + ":number"));
    used.step("RScript", doubled, 8);
    services(redisson, used, name);
    topic.removeAllListeners(); // not before: Redisson 3.16 then may wait for a new subscription for ever, to one Redis, too
  }

  /** What has threads or timers of its own in Redisson, or speaks to other instances of itself. */
  static void services(RedissonClient redisson, Used used, String name) throws Exception {
    RBlockingQueue<String> due = redisson.getBlockingQueue(name + ":due");
    RDelayedQueue<String> delayed = redisson.getDelayedQueue(due);
    delayed.offer("later", 300, TimeUnit.MILLISECONDS);
    used.step("RDelayedQueue", due.poll(Scenarios.SOON, TimeUnit.MILLISECONDS), "later");
    delayed.destroy();
    RMapCache<String, String> cache = redisson.getMapCache(name + ":cache");
    cache.put("a", "1", 300, TimeUnit.MILLISECONDS);
    cache.put("b", "2", 100, TimeUnit.SECONDS);
    boolean expired = poll(Scenarios.SOON, () -> cache.get("a") == null);
    used.step("RMapCache", expired + cache.get("b"), "true2");
    cache.destroy();
    CompletableFuture<String> heard = new CompletableFuture<>();
    RReliableTopic topic = redisson.getReliableTopic(name + ":reliable");
    topic.addListener(String.class, (channel, message) -> heard.complete(message));
    topic.publish("hello");
    used.step("RReliableTopic", heard.get(Scenarios.SOON, TimeUnit.MILLISECONDS), "hello");
    topic.removeAllListeners();
    RSemaphore semaphore = redisson.getSemaphore(name + ":semaphore"); // no lock_keys match it: one Redis counts
    semaphore.trySetPermits(1);
    used.step("RSemaphore", semaphore.tryAcquire() + "" + semaphore.tryAcquire(), "truefalse");
  }

  /** lock() waits, for as long as it takes: for the unlock, and not until the holder's lease would be over. */
  void more(Scenarios run) throws Exception {
    RLock lock = maker.apply(((Opened) run.client()).redisson, run.key);
    RLock other = maker.apply(((Opened) run.client()).redisson, run.key);
    lock.lock(Scenarios.LONG, TimeUnit.MILLISECONDS);
    want(!other.tryLock(), "granted twice");
    CompletableFuture<Long> waiter = CompletableFuture.supplyAsync(() -> {
      other.lock();
      long at = System.nanoTime();
      other.unlock();
      return at;
    });
    Thread.sleep(500); // most probably it waits by now; if not, it is granted at once, rightly
    long released = System.nanoTime();
    lock.unlock();
    want(waiter.get(Scenarios.SOON, TimeUnit.MILLISECONDS) >= released, "the waiter was granted before the release");
    Scenarios.ask("empty");
  }

  /** Queries, and the release by force. */
  void forced(Scenarios run) throws Exception {
    RLock lock = ((Opened) run.client()).redisson.getLock(run.key);
    RLock other = ((Opened) run.client()).redisson.getLock(run.key);
    want(!other.isLocked() && other.remainTimeToLive() < 0, "locked by nobody");
    want(lock.tryLock(0, 30, TimeUnit.SECONDS) && lock.tryLock(0, 30, TimeUnit.SECONDS), "not granted twice to its holder");
    want(lock.isLocked() && other.isLocked(), "not locked");
    want(lock.isHeldByCurrentThread() && !other.isHeldByCurrentThread(), "held by the wrong one");
    long thread = Thread.currentThread().getId();
    want(lock.isHeldByThread(thread) && !lock.isHeldByThread(thread + 1), "held by the wrong thread");
    want(lock.getHoldCount() == 2 && other.getHoldCount() == 0, "hold count: " + lock.getHoldCount());
    want(lock.remainTimeToLive() > 20_000 && lock.remainTimeToLive() <= 31_000, "time to live: " + lock.remainTimeToLive());
    want(other.forceUnlock(), "not unlocked by force");
    want(!lock.isLocked() && !lock.isHeldByCurrentThread(), "still locked after forceUnlock");
    want(!other.forceUnlock(), "unlocked by force again");
    Scenarios.ask("empty");
  }

  /** What masters cannot vote on is refused, by an error that says where to read why. */
  void refused(Scenarios run) throws Exception {
    RedissonClient c = ((Opened) run.client()).redisson;
    refuse("RSemaphore, permits", () -> c.getSemaphore(run.key + ":s").trySetPermits(2));
    refuse("RSemaphore", () -> c.getSemaphore(run.key + ":s").tryAcquire());
    refuse("RPermitExpirableSemaphore, permits", () -> c.getPermitExpirableSemaphore(run.key + ":p").trySetPermits(2));
    refuse("RPermitExpirableSemaphore", () -> c.getPermitExpirableSemaphore(run.key + ":p").tryAcquire());
    refuse("RCountDownLatch, count", () -> c.getCountDownLatch(run.key + ":c").trySetCount(2));
    refuse("RCountDownLatch", () -> c.getCountDownLatch(run.key + ":c").countDown());
    if (has("getFencedLock", String.class)) {
      RLock fenced = (RLock) call(c, "getFencedLock", new Class<?>[] {String.class}, run.key + ":f");
      refuse("RFencedLock", () -> fenced.tryLock());
    }
    Scenarios.ask("empty");
  }

  interface Step {
    void go() throws Exception;
  }

  static void refuse(String what, Step step) {
    try {
      step.go();
    } catch (Exception e) {
      want(String.valueOf(e.getMessage()).contains("Scripts that are refused in docs/clients.md"), what + ": " + e);
      return;
    }
    want(false, what + " was served");
  }

  /** Many readers or one writer. */
  void shared(Scenarios run) throws Exception {
    RReadWriteLock one = ((Opened) run.client()).redisson.getReadWriteLock(run.key);
    RReadWriteLock two = ((Opened) run.client()).redisson.getReadWriteLock(run.key);
    want(one.readLock().tryLock(0, 30, TimeUnit.SECONDS), "the first reader was refused");
    want(two.readLock().tryLock(0, 30, TimeUnit.SECONDS), "the second reader was refused");
    want(one.readLock().isLocked() && two.readLock().isLocked() && !two.writeLock().isLocked(), "not locked to read");
    want(!one.writeLock().tryLock(0, 30, TimeUnit.SECONDS), "a writer was let in beside readers");
    one.readLock().unlock();
    want(!one.writeLock().tryLock(0, 30, TimeUnit.SECONDS), "a writer was let in beside a reader");
    two.readLock().unlock();
    want(one.writeLock().tryLock(0, 30, TimeUnit.SECONDS), "the writer was refused");
    want(two.writeLock().isLocked() && !two.readLock().isLocked(), "not locked to write");
    want(!two.readLock().tryLock(0, 30, TimeUnit.SECONDS), "a reader was let in beside a writer");
    one.writeLock().unlock();
    Scenarios.ask("empty");
  }
}
