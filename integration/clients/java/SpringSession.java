import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.cache.Cache;
import org.springframework.data.redis.cache.RedisCacheManager;
import org.springframework.data.redis.cache.RedisCacheWriter;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.connection.stream.Consumer;
import org.springframework.data.redis.connection.stream.ReadOffset;
import org.springframework.data.redis.connection.stream.StreamOffset;
import org.springframework.data.redis.core.RedisTemplate;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.listener.PatternTopic;
import org.springframework.data.redis.listener.RedisMessageListenerContainer;
import org.springframework.data.redis.serializer.RedisSerializer;
import org.springframework.data.redis.stream.StreamMessageListenerContainer;
import org.springframework.session.Session;
import org.springframework.session.SessionRepository;
import org.springframework.session.data.redis.RedisIndexedSessionRepository;

/** Spring Session, which learns from keyspace notifications that a session has expired; Spring's cache and stream listeners. */
class SpringSession extends SpringData {
  SpringSession() {
    super("Spring Session", "spring-session-data-redis");
  }

  public static void main(String[] args) throws Exception {
    Scenarios.run(new SpringSession());
  }

  @Override
  void useData(LettuceConnectionFactory factory, Used used, String name, String piped) throws Exception {
    StringRedisTemplate redis = new StringRedisTemplate(factory);
    sessions(factory, redis, used);
    caches(factory, used, name);
    streams(factory, redis, used, name + ":stream");
  }

  private static void sessions(LettuceConnectionFactory factory, StringRedisTemplate redis, Used used) throws Exception {
    RedisTemplate<String, Object> template = new RedisTemplate<>();
    template.setConnectionFactory(factory);
    template.setKeySerializer(RedisSerializer.string());
    template.setHashKeySerializer(RedisSerializer.string());
    template.afterPropertiesSet();
    RedisIndexedSessionRepository sessions = new RedisIndexedSessionRepository(template);
    Set<String> events = ConcurrentHashMap.newKeySet();
    sessions.setApplicationEventPublisher(event -> events.add(event.getClass().getSimpleName()));
    factory.getConnection().serverCommands().setConfig("notify-keyspace-events", "Egx"); // as Spring's own configuration does
    RedisMessageListenerContainer container = new RedisMessageListenerContainer();
    container.setConnectionFactory(factory);
    container.addMessageListener(sessions, List.of(new PatternTopic("__keyevent@*:del"), new PatternTopic("__keyevent@*:expired"),
        new PatternTopic(sessions.getSessionCreatedChannelPrefix() + "*")));
    container.afterPropertiesSet();
    container.start();
    @SuppressWarnings("unchecked")
    SessionRepository<Session> repository = (SessionRepository<Session>) (SessionRepository<?>) sessions;
    Session session = repository.createSession();
    session.setAttribute("a", "1");
    repository.save(session);
    String former = session.getId();
    session.changeSessionId();
    repository.save(session);
    Object kept = repository.findById(session.getId()).getAttribute("a");
    used.step("sessions", kept + "" + repository.findById(former), "1null");
    session.setMaxInactiveInterval(Duration.ofSeconds(1));
    repository.save(session);
    used.step("their expiry, told by keyspace notifications", poll(Scenarios.SOON, () -> events.contains("SessionExpiredEvent")), true);
    container.destroy();
  }

  private static void caches(LettuceConnectionFactory factory, Used used, String name) throws Exception {
    // By itself the writer does not wait for what it sends over Lettuce: a get right after it may find what was there before.
    RedisCacheWriter writer = RedisCacheWriter.create(factory, w -> w.enableLocking().immediateWrites());
    Cache cache = RedisCacheManager.builder(writer).build().getCache(name + ":cache");
    AtomicInteger made = new AtomicInteger();
    ExecutorService threads = Executors.newFixedThreadPool(4);
    for (int i = 0; i < 8; i++) {
      threads.submit(() -> cache.get("a", made::incrementAndGet));
    }
    threads.shutdown();
    want(threads.awaitTermination(Scenarios.SOON, TimeUnit.MILLISECONDS), "the cache is slow");
    cache.clear();
    used.step("cache", made + "" + cache.get("a"), "1null");
  }

  private static void streams(LettuceConnectionFactory factory, StringRedisTemplate redis, Used used, String stream) throws Exception {
    var container = StreamMessageListenerContainer.create(factory,
        StreamMessageListenerContainer.StreamMessageListenerContainerOptions.builder().pollTimeout(Duration.ofMillis(500)).build());
    redis.opsForStream().createGroup(stream, ReadOffset.from("0"), "group");
    Set<String> got = ConcurrentHashMap.newKeySet();
    for (String consumer : List.of("one", "two")) {
      container.receiveAutoAck(Consumer.from("group", consumer), StreamOffset.create(stream, ReadOffset.lastConsumed()),
          message -> got.add(message.getId().getValue()));
    }
    container.start();
    for (int i = 0; i < 20; i++) {
      redis.opsForStream().add(stream, Map.of("n", "" + i));
    }
    used.step("streams with a consumer group", poll(Scenarios.SOON, () -> got.size() == 20), true);
    container.stop();
  }
}
