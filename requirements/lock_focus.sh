#!/bin/sh
# Pins the environment of focus-validator with hashes, `make lock-focus`. Like lock.sh, it writes no index address.
# The first argument is a Python 3.12, the others go to pip-compile.
set -eu
cd "$(dirname "$0")"
python=$1
shift
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"$python" -m venv "$tools"
"$tools/bin/python" -m pip install --quiet --disable-pip-version-check "$(grep -o '^pip-tools==[^ ]*' dev.txt)"
"$tools/bin/pip-compile" --quiet --generate-hashes --allow-unsafe --strip-extras --no-header --no-annotate \
  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options \
  "$@" --output-file focus.txt focus.in
