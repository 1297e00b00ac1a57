# Builds the programs into the current directory: redislock once for each version that a .mod file names.
set -eu
out=$PWD
cd "$(dirname "$0")"
go build -o "$out" ./hand ./redsync ./redislock ./rueidislock ./asynq
for mod in redislock-*.mod; do
	go build -modfile="$mod" -o "$out/${mod%.mod}" ./redislock
done
