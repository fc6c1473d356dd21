#!/bin/sh
# Installs the packages in debian-test.txt that are missing: servers, of which the tests start their own. Nothing of them
# is started for the machine, now or at its next boot: Debian's PostgreSQL comes without its cluster, policy-rc.d keeps
# the installation from starting services, and what it has enabled is disabled.
set -eu
cd "$(dirname "$0")"
units="epmd.service epmd.socket rabbitmq-server.service redis-server.service"
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
new_units=""
for unit in $units; do
  [ -e "/lib/systemd/system/$unit" ] || new_units="$new_units $unit"
done
clusters=/etc/postgresql-common/createcluster.d
policy=/usr/sbin/policy-rc.d
clean_up() {
  $as_root rm -f "$clusters/doctriage-tests.conf" "$policy"
  $as_root rmdir "$clusters" 2>/dev/null || true
  if [ -e "$policy.before" ]; then $as_root mv "$policy.before" "$policy"; fi
}
if [ -e "$policy" ]; then $as_root mv "$policy" "$policy.before"; fi
trap clean_up EXIT
trap 'exit 1' HUP INT TERM
$as_root mkdir -p "$clusters"
echo "create_main_cluster = false" | $as_root tee "$clusters/doctriage-tests.conf" >/dev/null
printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
$as_root chmod 755 "$policy"
$as_root apt-get update -qq
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
for unit in $new_units; do
  [ -e "/lib/systemd/system/$unit" ] || continue
  if command -v systemctl >/dev/null 2>&1; then
    $as_root systemctl --quiet disable "$unit" 2>/dev/null
  elif [ -e "/etc/init.d/${unit%.*}" ]; then
    $as_root update-rc.d "${unit%.*}" disable
  fi
done
