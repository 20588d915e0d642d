#!/usr/bin/env bash
# Installs Bidkeeper from this checkout as a service with users of its own, or brings an installed one to this version.
# As root: deploy/install.sh [--postgresql] [--ray] [users] [directories] [program] [settings] [service]; without words
# all of them, in this order. Each may be done again at any time; settings that are there are kept.
#
# --postgresql: the program gets PostgreSQL's driver, too, and keeps it from then on; --ray: Ray likewise.
#
# For images and tests: BIDKEEPER_INSTALL_ROOT is put before every path, BIDKEEPER_INSTALL_OWNERS ("REST GATEWAY SIGNER
# GROUP RELAY", names or numbers) replaces the owners of directories, PYTHON names the interpreter.
set -euo pipefail
umask 022

checkout="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
root="${BIDKEEPER_INSTALL_ROOT:-}"
owners="bidkeeper bidkeeper-gateway bidkeeper-signer bidkeeper bidkeeper-relay"
read -r rest gateway signer group relay <<<"${BIDKEEPER_INSTALL_OWNERS:-$owners}"
opt="$root/opt/bidkeeper"
sources=(cli core gateway hooks markets models server simulator strategy wallet workers deploy docs web
  setup.py pyproject.toml requirements.lock requirements-postgresql.lock requirements-ray.lock supervisord.conf README.md
  CHANGELOG.md LICENSE)

users() {
  getent group bidkeeper >/dev/null || groupadd --system bidkeeper
  for name in bidkeeper bidkeeper-gateway bidkeeper-signer bidkeeper-relay; do
    getent passwd "$name" >/dev/null ||
      useradd --system --gid bidkeeper --home-dir "/var/lib/$name" --no-create-home --shell /usr/sbin/nologin "$name"
  done
}

# directory MODE OWNER PATH: all belong to the one group, through which sockets and the database are reached.
directory() {
  install -d -m "$1" -o "$2" -g "$group" "$root$3"
}

directories() {
  install -d -m 0755 "$root/etc" "$root/opt" "$root/var/lib" "$root/var/log"
  directory 0750 root /etc/bidkeeper
  directory 0750 root /var/log/bidkeeper
  directory 0750 "$rest" /var/lib/bidkeeper
  directory 0750 "$rest" /var/lib/bidkeeper/run
  directory 0750 "$rest" /var/lib/bidkeeper/logs
  directory 0750 "$gateway" /var/lib/bidkeeper-gateway
  directory 0750 "$gateway" /var/lib/bidkeeper-gateway/run
  directory 0710 "$relay" /var/lib/bidkeeper-relay
  # The signer's own directory is root's: nobody can replace its contents, not even the signer.
  directory 0750 root /var/lib/bidkeeper-signer
  directory 0750 "$signer" /var/lib/bidkeeper-signer/run
  directory 0700 "$signer" /var/lib/bidkeeper-signer/keys
}

# The running programs keep their open files; later imports would be another version's, so the
# service is restarted after this.
program() {
  install -d -m 0755 "$opt"
  rm -rf "$opt/program.new" "$opt/program.old"
  mkdir "$opt/program.new"
  for source in "${sources[@]}"; do
    if [ -e "$checkout/$source" ]; then cp -R "$checkout/$source" "$opt/program.new/"; fi
  done
  find "$opt/program.new" -name __pycache__ -type d -prune -exec rm -rf {} +
  chown -R root:root "$opt/program.new"
  if [ -e "$opt/program" ]; then mv "$opt/program" "$opt/program.old"; fi
  mv "$opt/program.new" "$opt/program"

  [ -x "$opt/venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$opt/venv"
  if "$opt/venv/bin/python" -c 'import psycopg' 2>/dev/null; then extras+=(postgresql); fi
  if "$opt/venv/bin/python" -c 'import ray' 2>/dev/null; then extras+=(ray); fi
  "$opt/venv/bin/python" "$opt/program/deploy/runtime_lock.py" "${extras[@]}" >"$opt/requirements.txt"
  local pip=("$opt/venv/bin/python" -m pip install -q --disable-pip-version-check)
  "${pip[@]}" --require-hashes --only-binary :all: --no-binary embit -r "$opt/requirements.txt"
  "${pip[@]}" --no-deps --no-build-isolation -e "$opt/program"
  "$opt/venv/bin/python" -m compileall -q "$opt/program"
}

settings() {
  if [ ! -e "$root/etc/bidkeeper/environment" ]; then
    install -m 0640 -o root -g "$group" "$checkout/deploy/environment" "$root/etc/bidkeeper/environment"
  fi
}

service() {
  install -D -m 0644 "$checkout/deploy/bidkeeper.service" "$root/etc/systemd/system/bidkeeper.service"
  install -D -m 0755 "$checkout/deploy/bidkeeper-as-its-user" "$root/usr/local/bin/bidkeeper"
  if [ -z "$root" ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    echo "edit /etc/bidkeeper/environment, then: systemctl enable bidkeeper && systemctl restart bidkeeper"
  fi
}

if [ "$(id -u)" != 0 ]; then
  echo "install.sh creates users and directories: run it as root" >&2
  exit 1
fi
extras=()
while [ "${1:-}" = --postgresql ] || [ "${1:-}" = --ray ]; do
  extras+=("${1#--}")
  shift
done
steps=("$@")
if [ "$#" = 0 ]; then steps=(users directories program settings service); fi
for step in "${steps[@]}"; do
  case "$step" in
    users | directories | program | settings | service) "$step" ;;
    *) echo "install.sh: there is no step $step" >&2; exit 2 ;;
  esac
done
