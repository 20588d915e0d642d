#!/bin/bash
# Runs inside the booted container, as a unit of its own: starts the service, kills what it has, stops it, and writes what
# it saw as NAME=VALUE lines.
set -u
say() { echo "$1=$2"; }
wait_ready() {
  for _ in $(seq 300); do
    if curl -fsS -m 5 http://127.0.0.1:8888/readyz >/dev/null 2>&1; then return 0; fi
    sleep 0.5
  done
  return 1
}
main_pid() { systemctl show -p MainPID --value bidkeeper; }
program() { pgrep -f "bidkeeper $1" | head -1; }

install -d -m 0755 /etc/bidkeeper
sed -i 's/^BIDKEEPER_WHITELIST=.*/BIDKEEPER_WHITELIST=*/' /etc/bidkeeper/environment
systemctl daemon-reload
systemctl enable --now bidkeeper 2>&1
if wait_ready; then say ready yes; else say ready no; fi
say active "$(systemctl is-active bidkeeper)"
for name in simulator signer facts gateway manager hooks server; do
  say "user_$name" "$(ps -o user:32= -p "$(program $name)" 2>/dev/null | tr -d ' ')"
done
say whitelisted "$(bidkeeper whitelist add bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu >/dev/null 2>&1 && echo yes || echo no)"
say doctor "$(bidkeeper doctor >/root/doctor.txt 2>&1; echo $?)"

# How many filters each has: its unit's, and one of its own where it has given up the network.
filters() { awk '/^Seccomp_filters:/ {print $2}' "/proc/$1/status"; }
for name in signer facts gateway manager server; do say "filters_$name" "$(filters "$(program $name)")"; done
say filters_zygote "$(filters "$(pgrep -f 'bidkeeper: zygote' | head -1)")"
# As a program of the unit: /proc shows the other users' programs to nobody.
sees() {
  nsenter --target="$(program server)" --mount setpriv --reuid=bidkeeper --regid=bidkeeper --clear-groups \
    test -e "/proc/$(program $1)" && echo yes || echo no
}
for name in signer gateway manager; do say "server_sees_$name" "$(sees $name)"; done

for name in signer gateway manager server; do
  before="$(program $name)"
  kill -9 "$before"
  back=no
  for _ in $(seq 120); do
    now="$(program $name)"
    if [ -n "$now" ] && [ "$now" != "$before" ] && curl -fsS -m 5 http://127.0.0.1:8888/readyz >/dev/null 2>&1; then
      back=yes
      break
    fi
    sleep 0.5
  done
  say "back_$name" "$back"
done

before="$(main_pid)"
kill -9 "$before"
sleep 6
if wait_ready; then say back_supervisord yes; else say back_supervisord no; fi
say new_supervisord "$([ "$(main_pid)" != "$before" ] && echo yes || echo no)"

systemctl restart bidkeeper
if wait_ready; then say restarted yes; else say restarted no; fi
began=$(date +%s)
systemctl stop bidkeeper
say stopped_in $(($(date +%s) - began))
say left "$(pgrep -fc '/opt/bidkeeper')"
say result "$(systemctl show -p Result --value bidkeeper)"
say exposure "$(systemd-analyze security --no-pager bidkeeper 2>/dev/null | tail -1 | grep -oE '[0-9]+\.[0-9]+')"
journalctl -u bidkeeper --no-pager | tail -60 >/root/journal.txt
echo done=yes
systemctl poweroff
