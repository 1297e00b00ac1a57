# java.sh classpath SET...        finds, with Maven, what a profile of the pom needs, and writes it to SET.classpath
# java.sh compile SET:CLASS...    compiles the program for it
# java.sh run SET CLASS ARG...    runs it
# All in the current directory.
set -eu
source=$(dirname "$0")
step=$1
shift
case $step in
classpath)
	for set; do
		mvn -q -B -f "$source/pom.xml" -P "$set" dependency:build-classpath -Dmdep.outputFile="$PWD/$set.classpath" \
			-Dstyle.color=never
	done
	;;
compile)
	for each; do
		set=${each%%:*} class=${each##*:}
		mkdir -p "classes/$set"
		if [ -f "classes/$set/$class.class" ] && [ -z "$(find "$source" -name '*.java' -newer "classes/$set/$class.class")" ]; then
			continue
		fi
		javac -nowarn -Xlint:none -d "classes/$set" -cp "$(cat "$set.classpath")" -sourcepath "$source" "$source/$class.java"
	done
	;;
run)
	set=$1
	shift
	exec java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "classes/$set:$(cat "$set.classpath")" "$@"
	;;
esac
