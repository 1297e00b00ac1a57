# Makes a virtual environment of each name in the current directory, with the packages in the file of that name.
set -eu
source=$(dirname "$0")
for name; do
	python3 -m venv "$name"
	"$name/bin/pip" install --quiet --disable-pip-version-check --no-deps --requirement "$source/$name.txt"
done
