#!/bin/sh
# Pins the requirements with hashes, `make lock`. Pins that still fit stay as they are; `--upgrade` renews them all.
# No index address is written, so the files install from whichever index pip is set up for.
set -eu
cd "$(dirname "$0")"
compile() {
  ../.venv/bin/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-header \
    --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options "$@"
}
compile "$@" --output-file runtime.txt runtime.in
compile "$@" --constraint runtime.txt --output-file s3.txt s3.in
compile "$@" --constraint runtime.txt --constraint s3.txt --output-file dev.txt dev.in

# pip-compile cannot leave dependencies out, so the blocks of the packages that nodeps.in does not name are dropped.
resolved=$(mktemp)
trap 'rm -f "$resolved"' EXIT
cp nodeps.txt "$resolved"
compile "$@" --output-file "$resolved" nodeps.in
awk '
  FNR == NR { if ($0 !~ /^#/) { split($0, part, "=="); named[part[1]] = 1 } next }
  /^[^ #]/ { split($0, part, "=="); keep = part[1] in named }
  keep && !/^ *#/
' nodeps.in "$resolved" > nodeps.txt
