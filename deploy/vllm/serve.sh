#!/usr/bin/env bash
# Starts vLLM exactly as a plan file of `doctriage plan --out` says. Needs bash 4.4, python3 and vLLM, not doctriage.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: serve.sh [--print] PLAN.json [vllm flags…]

Further flags are appended to those of the plan, such as --host 0.0.0.0 --port 8000. --print shows the command
instead of running it.

  VLLM_API_KEY  the key that clients must give; vLLM reads it itself, it is in no command line
  VLLM          the program, in words, by default: vllm. Or: python3 -m vllm.entrypoints.openai.api_server
  VLLM_MODEL    what to load instead of the plan's checkpoint, such as a folder on this machine
TEXT
}

fail() { # status, message
  printf 'serve.sh: %s\n' "$2" >&2
  exit "$1"
}

print_only=""
plan=""
extra=()
for word in "$@"; do
  case "$word" in
    --print) print_only=1 ;;
    -h | --help) [ -n "$plan" ] || { usage; exit 0; }; extra+=("$word") ;;
    *) if [ -n "$plan" ]; then extra+=("$word"); else plan="$word"; fi ;;
  esac
done
[ -n "$plan" ] || { usage >&2; exit 2; }
command -v python3 >/dev/null || fail 127 "python3 is not on PATH; it reads the plan file"

# The words after "vllm serve", each ended by a NUL: the checkpoint, then the flags.
mapfile -d '' -t planned < <(
  python3 - "$plan" <<'PYTHON'
import json
import sys

path = sys.argv[1]
advice = "name a plan file, as `doctriage plan --out FILE` writes it"
try:
    with open(path, encoding="utf-8") as file:
        command = json.load(file)["serve_command"]
    if command[:2] != ["vllm", "serve"] or len(command) < 3:
        raise ValueError
    words = "".join(word + "\0" for word in command[2:])
    sys.stdout.write(words)
except OSError as error:
    sys.exit(f"serve.sh: {path}: {error.strerror}; {advice}")
except (ValueError, KeyError, TypeError):
    sys.exit(f"serve.sh: {path}: no serving plan; {advice}")
PYTHON
)
[ "${#planned[@]}" -gt 0 ] || exit 2

read -r -a program <<<"${VLLM:-vllm}"
[ "${#program[@]}" -gt 0 ] || fail 2 "VLLM is blank; leave it out, or name the program"
model="${VLLM_MODEL:-${planned[0]}}"
last_word="${program[-1]##*/}"
if [ "${#program[@]}" -gt 1 ] && [ "$last_word" != vllm ]; then
  launch=("${program[@]}" --model "$model") # a module of vLLM knows no "serve"
else
  launch=("${program[@]}" serve "$model")
fi
launch+=("${planned[@]:1}" "${extra[@]}")

if [ -n "$print_only" ]; then
  exec python3 -c 'import shlex, sys; print(shlex.join(sys.argv[1:]))' "${launch[@]}"
fi
command -v "${program[0]}" >/dev/null ||
  fail 127 "${program[0]} is not on PATH; install vLLM, or name the program with VLLM"
unset VLLM VLLM_MODEL # vLLM warns of VLLM_ variables it does not know
export VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
exec "${launch[@]}"
