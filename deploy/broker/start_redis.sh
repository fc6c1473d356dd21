#!/bin/sh
# Starts Redis with the password in REDIS_PASSWORD, which no command line shows.
set -eu
: "${REDIS_PASSWORD:?set it in .env, as ./new_env.sh does}"
umask 077
printf 'include %s\nrequirepass "%s"\n' "${REDIS_CONF:-/etc/redis/redis.conf}" "$REDIS_PASSWORD" >"${REDIS_RUN:-/run/redis}/redis.conf"
exec redis-server "${REDIS_RUN:-/run/redis}/redis.conf" "$@"
