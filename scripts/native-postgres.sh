#!/usr/bin/env bash
# Starts a native PostgreSQL 17 with pgvector for the store's tests and prints
# its URL on stdout (everything else goes to stderr). Debian's packages live in a
# folder of their own made by debootstrap; it is kept between runs, so only the
# first run takes minutes. Needs root and debootstrap.
#
#   PML_TEST_DATABASE_URL=$(scripts/native-postgres.sh) go test ./internal/store/...
#   scripts/native-postgres.sh stop
#
# PML_NATIVE_ROOT   the folder, default .tools/trixie
# PML_DEBIAN_MIRROR the package mirror; default: debootstrap's own
set -euo pipefail
cd "$(dirname "$0")/.."
root=$(realpath -m "${PML_NATIVE_ROOT:-.tools/trixie}")
port=5499
bin=/usr/lib/postgresql/17/bin
data=/var/lib/postgresql/17/pml

in_root() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
as_postgres() { in_root setpriv --reuid=postgres --regid=postgres --init-groups "$@"; }

stop() { as_postgres "$bin/pg_ctl" -D "$data" -m fast -w stop >&2 || true; }

make_root() {
  local new="$root.new"
  command -v debootstrap >/dev/null || { echo "native-postgres: install debootstrap first (apt-get install debootstrap)" >&2; exit 1; }
  rm -rf "$new"
  # The mirror is an optional last argument.
  debootstrap --variant=minbase --include=postgresql-common trixie "$new" ${PML_DEBIAN_MIRROR:+"$PML_DEBIAN_MIRROR"} >&2
  # No cluster is wanted when the server is installed: ours is made below.
  mkdir -p "$new/etc/postgresql-common"
  echo 'create_main_cluster = false' >"$new/etc/postgresql-common/createcluster.conf"
  root="$new" in_root apt-get install -y --no-install-recommends postgresql-17 postgresql-17-pgvector >&2
  rm -rf "$new"/var/cache/apt/archives/*.deb "$new"/usr/share/{doc,man,locale}
  rm -rf "$root"
  mv "$new" "$root"
}

make_cluster() {
  mkdir -p "$root$data"
  in_root chown -R postgres:postgres "$(dirname "$data")"
  in_root chmod 700 "$data"
  as_postgres "$bin/initdb" -D "$data" -U postgres --auth=trust --encoding=UTF8 --locale=C.UTF-8 >&2
  cat >>"$root$data/postgresql.conf" <<-CONF
	listen_addresses = ''
	port = $port
	unix_socket_directories = '/var/run/postgresql'
	shared_buffers = 64MB
	max_connections = 200
	CONF
}

if [ "${1:-start}" = stop ]; then
  stop
  exit 0
fi
[ -x "$root$bin/postgres" ] || make_root
[ -e "$root$data/PG_VERSION" ] || make_cluster
mkdir -p "$root/run/postgresql"
in_root chown postgres:postgres /var/run/postgresql
if ! as_postgres "$bin/pg_ctl" -D "$data" status >/dev/null 2>&1; then
  # What a killed run left behind would make pg_ctl believe in a server that is gone.
  rm -f "$root$data/postmaster.pid"
  as_postgres "$bin/pg_ctl" -D "$data" -l "$data/log" -w start >/dev/null
fi
echo "postgres://postgres@/postgres?host=$root/run/postgresql&port=$port"
