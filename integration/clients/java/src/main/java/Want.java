import java.util.Objects;

/** What both programs share. */
final class Want {
  static final String RELEASE =
      "if redis.call(\"get\",KEYS[1]) == ARGV[1] then return redis.call(\"del\",KEYS[1]) else return 0 end";

  private Want() {}

  /** Ends the program with a message unless the two are equal. */
  static void want(String what, Object got, Object expected) {
    if (!Objects.equals(got, expected)) {
      System.err.println(what + ": got " + got + ", want " + expected);
      System.exit(1);
    }
  }
}
