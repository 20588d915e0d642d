#!/usr/bin/env bash
# Installs Bidkeeper from this checkout as a service with its own users, or upgrades an installed one to this version.
# As root: deploy/install.sh [--postgresql] [--ray] [users] [directories] [program] [settings] [service]; without steps
# it does all of them, in this order. Each step can be repeated at any time; existing settings are kept.
#
# --postgresql: the program gets PostgreSQL's driver, and keeps it in later upgrades; --ray: Ray likewise.
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

# directory MODE OWNER PATH: all directories belong to one group, which has access to sockets and the database.
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
  # root owns the signer's directory, so that not even the signer can replace its contents.
  directory 0750 root /var/lib/bidkeeper-signer
  directory 0750 "$signer" /var/lib/bidkeeper-signer/run
  directory 0700 "$signer" /var/lib/bidkeeper-signer/keys
}

# Each version has its own directory with program and environment, because an environment cannot be moved; one rename
# replaces both. A step that fails before it leaves the installation as it was. Restart the service afterwards: until
# then a running program uses its own version, which is kept, and a program that restarts gets the new one.
program() {
  local extra locks=(requirements.lock) source part former
  # Not by asking its Python, because a newer Debian may have removed that.
  if compgen -G "$opt/venv/lib/python3*/site-packages/psycopg" >/dev/null; then extras+=(postgresql); fi
  if compgen -G "$opt/venv/lib/python3*/site-packages/ray" >/dev/null; then extras+=(ray); fi
  for extra in "${extras[@]}"; do locks+=("requirements-$extra.lock"); done

  version="versions/$(date -u +%Y%m%d-%H%M%S)-$$"
  mkdir -p "$opt/versions"
  mkdir "$opt/$version"
  trap give_up EXIT
  mkdir "$opt/$version/program"
  for source in "${sources[@]}"; do cp -R "$checkout/$source" "$opt/$version/program/"; done
  # The copy has no git to ask, so the commit for `bidkeeper --version` is written to a file.
  (cd "$checkout" && "${PYTHON:-python3}" -B -m core.version) >"$opt/$version/program/core/commit.txt"
  find "$opt/$version/program" -name __pycache__ -type d -prune -exec rm -rf {} +
  chown -R root:root "$opt/$version/program"
  "$opt/$version/program/deploy/venv.sh" "$opt/$version/venv" "${locks[@]}"
  trap - EXIT

  former="$(readlink "$opt/current" || true)"
  ln -sfT "$version" "$opt/current.new"
  mv -T "$opt/current.new" "$opt/current"
  rm -rf "$opt/program.old" "$opt/venv.old" "$opt/requirements.txt"
  for part in program venv; do
    if [ -L "$opt/$part" ]; then continue; fi
    # An older install.sh made them directories.
    if [ -e "$opt/$part" ]; then mv "$opt/$part" "$opt/$part.old"; fi
    ln -s "current/$part" "$opt/$part"
  done
  for part in "$opt"/versions/*; do
    case "versions/${part##*/}" in "$version" | "$former") continue ;; esac
    # A running program has mapped libraries of its version, and starts workers from there.
    grep -qsF "$(realpath "$part")/" /proc/[0-9]*/maps || rm -rf "$part"
  done
}

give_up() {
  rm -rf "${opt:?}/$version"
  echo "install.sh: the program could not be installed; the earlier installation is as it was" >&2
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
    *) echo "install.sh: unknown step $step" >&2; exit 2 ;;
  esac
done
