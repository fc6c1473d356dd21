#!/usr/bin/env bash
# Prints example.env with secrets of its own: ./new_env.sh >.env, or ./new_env.sh rabbitmq >.env for the other broker.
set -euo pipefail
umask 077

broker="${1:-redis}"
case "$broker" in
  redis | rabbitmq) ;;
  *) echo "usage: new_env.sh [redis|rabbitmq] >.env" >&2; exit 2 ;;
esac

secret() { od -An -vtx1 -N24 /dev/urandom | tr -d ' \n'; }

postgres="$(secret)"
password="$(secret)"
url="redis://:$password@redis:6379/0"
[ "$broker" = redis ] || url="amqp://doctriage:$password@rabbitmq:5672//"

while IFS= read -r line; do
  case "$line" in
    COMPOSE_PROFILES=*) line="COMPOSE_PROFILES=$broker" ;;
    POSTGRES_PASSWORD=) line+="$postgres" ;;
    DOCTRIAGE_DATABASE_URL=) line+="postgresql://doctriage:$postgres@postgresql:5432/doctriage" ;;
    REDIS_PASSWORD= | RABBITMQ_PASSWORD=) line+="$password" ;;
    DOCTRIAGE_POOL__BROKER_URL=) line+="$url" ;;
    DOCTRIAGE_POOL__SECRET_KEY=) line+="$(head -c 32 /dev/urandom | base64 | tr '+/' '-_')" ;;
    DOCTRIAGE_VLM__API_KEY=) line+="$(secret)" ;;
    FLOWER_BASIC_AUTH=) line+="doctriage:$(secret)" ;;
  esac
  printf '%s\n' "$line"
done <"$(dirname "${BASH_SOURCE[0]}")/example.env"
