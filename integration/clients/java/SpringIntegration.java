import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.redis.util.RedisLockRegistry.RedisLockType;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

/** The RedisLockRegistry of Spring Integration, whose waiters poll or are told. */
class SpringIntegration extends Library {
  // Later versions have more.
  static final Method RENEW = method("renewLock", Object.class, Duration.class);
  static final Method SCHEDULER = method("setRenewalTaskScheduler", TaskScheduler.class);

  final RedisLockType type;

  SpringIntegration(String kind, RedisLockType type) {
    super("Spring Integration, " + kind, "spring-integration-redis");
    this.type = type;
    reentrant = true;
    extended = RENEW != null;
    watchdogMs = SCHEDULER == null ? 0 : 1_500;
  }

  public static void main(String[] args) throws Exception {
    Scenarios.run(
        new SpringIntegration("spin", RedisLockType.SPIN_LOCK),
        new SpringIntegration("pub/sub", RedisLockType.PUB_SUB_LOCK));
  }

  static Method method(String name, Class<?>... parameters) {
    try {
      return RedisLockRegistry.class.getMethod(name, parameters);
    } catch (NoSuchMethodException e) {
      return null;
    }
  }

  Client open() {
    return new Opened();
  }

  class Opened implements Client {
    final LettuceConnectionFactory factory = Factory.make();
    final List<RedisLockRegistry> registries = new ArrayList<>();
    final ThreadPoolTaskScheduler scheduler = new ThreadPoolTaskScheduler();

    Opened() {
      scheduler.initialize();
    }

    public Lock lock(String name, long ttlMs, byte[] token, boolean keep) throws Exception {
      RedisLockRegistry registry = new RedisLockRegistry(factory, "registry", ttlMs);
      registry.setRedisLockType(type);
      registries.add(registry);
      if (keep) {
        SCHEDULER.invoke(registry, scheduler);
      }
      return new Obtained(registry, name, registry.obtain(name));
    }

    public void close() {
      registries.forEach(RedisLockRegistry::destroy);
      factory.destroy();
      scheduler.shutdown();
    }
  }

  record Obtained(RedisLockRegistry registry, String name, java.util.concurrent.locks.Lock lock) implements Lock {
    public boolean acquire(long waitMs) throws Exception {
      return lock.tryLock(waitMs, TimeUnit.MILLISECONDS);
    }

    public boolean release() {
      lock.unlock(); // throws if the lock was lost
      return true;
    }

    public boolean extend(long ttlMs) throws Exception {
      RENEW.invoke(registry, name, Duration.ofMillis(ttlMs));
      return true;
    }
  }
}
