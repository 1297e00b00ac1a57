import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** Spring's connections, ready for use. */
class Factory {
  static LettuceConnectionFactory make() {
    LettuceConnectionFactory factory = new LettuceConnectionFactory(Library.HOST, Library.PORT);
    factory.afterPropertiesSet();
    try {
      factory.getClass().getMethod("start").invoke(factory);
    } catch (NoSuchMethodException e) {
      // before version 3 there was nothing to start
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
    return factory;
  }
}
