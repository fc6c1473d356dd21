#!/bin/sh
# Installs the packages in debian-test.txt that are missing: servers, of which the tests start their own. Debian's
# PostgreSQL comes without the cluster that it would make for the machine and start at every boot.
set -eu
cd "$(dirname "$0")"
missing=""
for name in $(cat debian-test.txt); do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing="$missing $name"
done
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null 2>&1; then
  echo "No apt-get here; install what these Debian packages hold, if you have not yet:$missing"
  exit 0
fi
as_root=$([ "$(id -u)" = 0 ] || echo sudo)
clusters=/etc/postgresql-common/createcluster.d
trap '$as_root rm -f "$clusters/doctriage-tests.conf"; $as_root rmdir "$clusters" 2>/dev/null || true' EXIT
$as_root mkdir -p "$clusters"
echo "create_main_cluster = false" | $as_root tee "$clusters/doctriage-tests.conf" >/dev/null
$as_root apt-get update -qq
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
