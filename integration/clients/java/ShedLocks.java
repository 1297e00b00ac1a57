import java.lang.reflect.Constructor;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.Optional;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import net.javacrumbs.shedlock.core.ClockProvider;
import net.javacrumbs.shedlock.core.ExtensibleLockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.redis.spring.RedisLockProvider;
import net.javacrumbs.shedlock.support.KeepAliveLockProvider;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** ShedLock over Spring Data Redis, as it is by default and with updates that check the holder. */
class ShedLocks extends Library {
  final boolean safe;

  ShedLocks(String name, boolean safe) {
    super(name, "shedlock-provider-redis-spring");
    this.safe = safe;
    tells = false;
    watchdogMs = 1_500;
  }

  public static void main(String[] args) throws Exception {
    Scenarios.run(new ShedLocks("ShedLock", false), new ShedLocks("ShedLock, safeUpdate", true));
  }

  Client open() throws Exception {
    LettuceConnectionFactory factory = Factory.make();
    RedisLockProvider provider = new RedisLockProvider.Builder(factory).safeUpdate(safe).build();
    ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor();
    // The public constructor keeps no lock of less than 30 s, for which a scenario does not wait.
    Constructor<KeepAliveLockProvider> constructor = KeepAliveLockProvider.class.getDeclaredConstructor(
        ExtensibleLockProvider.class, ScheduledExecutorService.class, Duration.class);
    constructor.setAccessible(true);
    LockProvider keeper = constructor.newInstance(provider, timer, Duration.ofSeconds(1));
    return new Client() {
      public Provided lock(String name, long ttlMs, byte[] token, boolean keep) {
        return new Provided(keep ? keeper : provider, name, Duration.ofMillis(ttlMs));
      }

      public void close() {
        timer.shutdown();
        factory.destroy();
      }
    };
  }

  /** Jobs that end 1 to 3 ms before their lockAtLeastFor, by a clock that stands still: their locks end then. */
  void more(Scenarios run) throws Exception {
    Provided job = (Provided) run.lock(10 * Scenarios.LONG);
    ClockProvider.setClock(Clock.fixed(Instant.now(), ZoneOffset.UTC));
    try {
      for (int ms = 1; ms <= 3; ms++) {
        Scenarios.granted("take for at least " + ms + " ms", job.atLeast(Duration.ofMillis(ms)));
        Scenarios.released(job);
        Scenarios.ask("empty");
      }
    } finally {
      ClockProvider.setClock(Clock.systemUTC());
    }
  }

  static class Provided implements Lock {
    final LockProvider provider;
    final String name;
    final Duration ttl;
    Duration atLeast = Duration.ZERO;
    SimpleLock held;

    Provided(LockProvider provider, String name, Duration ttl) {
      this.provider = provider;
      this.name = name;
      this.ttl = ttl;
    }

    Provided atLeast(Duration time) {
      atLeast = time;
      return this;
    }

    public boolean acquire(long waitMs) throws Exception {
      return poll(waitMs, () -> keep(provider.lock(new LockConfiguration(ClockProvider.now(), name, ttl, atLeast))));
    }

    public boolean release() {
      held.unlock();
      return true;
    }

    public boolean extend(long ttlMs) {
      return keep(held.extend(Duration.ofMillis(ttlMs), Duration.ZERO));
    }

    private boolean keep(Optional<SimpleLock> lock) {
      lock.ifPresent(l -> held = l);
      return lock.isPresent();
    }
  }
}
