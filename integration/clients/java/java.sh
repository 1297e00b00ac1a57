# Runs a compiled program. usage: java.sh CLASS HOST PORT
exec java -cp "target/classes:$(cat classpath)" "$@"
