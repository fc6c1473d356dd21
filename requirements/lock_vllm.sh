#!/bin/sh
# Pins vLLM's environment with hashes, `make lock-vllm`; some minutes. Like lock.sh, it writes no index address.
set -eu
cd "$(dirname "$0")"

# torchaudio and torchcodec are CUDA builds that end vLLM's start; triton is a gigabyte that only a GPU uses. Nothing
# that reads images needs one of them, so their blocks are dropped, and vllm.txt is installed with --no-deps.
dropped="torchaudio torchcodec triton"

resolved=$(mktemp)
trap 'rm -f "$resolved"' EXIT
cp vllm.txt "$resolved"
../.venv/bin/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-header --no-annotate \
  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options \
  "$@" --output-file "$resolved" vllm.in
awk -v dropped="$dropped" '
  BEGIN { split(dropped, names, " "); for (i in names) left_out[names[i]] = 1 }
  /^[^ #]/ { split($0, part, "=="); keep = !(part[1] in left_out) }
  keep && NF && !/^ *#/
' "$resolved" > vllm.txt
