import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RedissonClient;
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
            forced(run);
            refused(run);
          }
        },
        new RedissonLocks("RSpinLock", RedissonClient::getSpinLock),
        new RedissonLocks("RFairLock", RedissonClient::getFairLock),
        new RedissonLocks("RReadWriteLock", (c, name) -> c.getReadWriteLock(name).writeLock()) {
          void more(Scenarios run) throws Exception {
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

  Opened open() {
    Config config = new Config();
    config.setLockWatchdogTimeout(WATCHDOG_MS).setThreads(2).setNettyThreads(4);
    config.useSingleServer().setAddress("redis://" + HOST + ":" + PORT).setConnectionMinimumIdleSize(1)
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

  /** Queries, and the release by force. */
  void forced(Scenarios run) throws Exception {
    RLock lock = ((Opened) run.client()).redisson.getLock(run.key);
    RLock other = ((Opened) run.client()).redisson.getLock(run.key);
    want(!other.isLocked() && other.remainTimeToLive() < 0, "locked by nobody");
    want(lock.tryLock(0, 30, TimeUnit.SECONDS) && lock.tryLock(0, 30, TimeUnit.SECONDS), "not granted twice to its holder");
    want(lock.isLocked() && other.isLocked(), "not locked");
    want(lock.isHeldByCurrentThread() && !other.isHeldByCurrentThread(), "held by the wrong one");
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
      want(String.valueOf(e.getMessage()).contains("Scripts that are refused in the README"), what + ": " + e);
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
    want(!one.writeLock().tryLock(0, 30, TimeUnit.SECONDS), "a writer was let in beside readers");
    one.readLock().unlock();
    want(!one.writeLock().tryLock(0, 30, TimeUnit.SECONDS), "a writer was let in beside a reader");
    two.readLock().unlock();
    want(one.writeLock().tryLock(0, 30, TimeUnit.SECONDS), "the writer was refused");
    want(!two.readLock().tryLock(0, 30, TimeUnit.SECONDS), "a reader was let in beside a writer");
    one.writeLock().unlock();
    Scenarios.ask("empty");
  }
}
