"""`bidkeeper relay`: runs an nginx that forwards requests to the gateway, facts and signer on other hosts, over TLS.

Programs connect to its Unix sockets, so no worker needs TLS. On the signer's host it ends the other hosts' TLS, so the
process with the keys needs none, and forwards connections with a permitted certificate to the signer's socket.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import stat
import sys
import time
from pathlib import Path
from typing import NoReturn

from core import tls
from core.errors import BidkeeperError
from core.process import end_with_parent, hold_lock
from core.settings import Settings

_CONNECTIONS = 8192  # a request takes two, and each of a thousand workers keeps one open to the gateway
_LOOK_S = 2.0  # between two checks that the sockets' files exist
_OPENED_S = 10.0  # for nginx to create them
_FAILURES_OF_ONE_AWAY = 3  # failed connections: one alone may only mean that the host is busy
# Where packages put the module; if it is in none of them, nginx has it built in.
MODULES = [Path(f"/usr/{lib}/nginx/modules/ngx_stream_module.so") for lib in ("lib", "lib64")]
_HEAD = """\
# Bidkeeper's relay on this host; `bidkeeper relay` writes it anew at each start.
{module}{user}daemon off;
worker_processes 1;
worker_shutdown_timeout 60s;
pid {directory}/relay.pid;
error_log stderr warn;

events {{
    worker_connections {connections};
}}

stream {{
    # nginx skips a host that is down or on standby for a second or two, then tries it with one connection.
    proxy_connect_timeout 1s;
    proxy_ssl_protocols TLSv1.3;
    proxy_ssl_certificate {tls}/cert.pem;
    proxy_ssl_certificate_key {tls}/key.pem;
    proxy_ssl_trusted_certificate {tls}/ca.pem;
    proxy_ssl_verify on;
    proxy_ssl_session_reuse off;
"""
_AWAY = """
    upstream {program} {{
{hosts}
    }}
    server {{
        listen unix:{directory}/{program}.sock;
        proxy_pass {program};
        proxy_ssl on;
        proxy_ssl_name {role};
    }}
"""
_SIGNER = """
    # Only this certificate leads to the signer; a connection with another ends here.
    map $ssl_client_s_dn $signer {{
        CN={trader} unix:{socket};
    }}
    server {{
        listen {at} ssl so_keepalive=30s:10s:3;
        ssl_protocols TLSv1.3;
        ssl_certificate {tls}/cert.pem;
        ssl_certificate_key {tls}/key.pem;
        ssl_client_certificate {tls}/ca.pem;
        ssl_verify_client on;
        ssl_handshake_timeout {handshake_s:.0f}s;
        ssl_session_cache none;
        ssl_session_tickets off;
        proxy_pass $signer;
    }}
"""


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds [--print]."""
    parser.add_argument("--print", action="store_true", help="print nginx's configuration and start nothing")


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Becomes nginx until SIGTERM or SIGINT; SIGHUP reloads the certificates. Raises BidkeeperError."""
    text = configuration(settings)
    if not options.print:
        _become_nginx(settings, text)
    print(text, end="")
    return 0


def configuration(settings: Settings) -> str:
    """Returns nginx's configuration for this host. Raises BidkeeperError if there is nothing to relay."""
    directory, certificates = settings.relay_files, settings.tls_dir
    signer_hosts = (settings.signer_host,) if settings.signer_host else ()
    away = {
        "gateway": (settings.gateway_hosts, tls.TRADER),
        "facts": (settings.facts_hosts, tls.TRADER),
        "signer": (signer_hosts, tls.SIGNER),
    }
    parts = []
    for program, (hosts, role) in away.items():
        servers = [f"        server {host} max_fails={_FAILURES_OF_ONE_AWAY} fail_timeout=1s;" for host in hosts]
        if servers:
            parts.append(_AWAY.format(program=program, hosts="\n".join(servers), directory=directory, role=role))
    if settings.signer_listen:
        way = {"socket": settings.own_signer_socket, "at": settings.signer_listen, "tls": certificates}
        parts.append(_SIGNER.format(trader=tls.TRADER, handshake_s=tls.HANDSHAKE_S, **way))
    if not parts:
        raise BidkeeperError("there is nothing to relay: every program is on this host (docs/several-machines.md)")
    for path in (directory, certificates, settings.own_signer_socket):
        if not str(path).isprintable() or set(str(path)) & set(" ;{}$\"'\\#"):
            raise BidkeeperError(f"nginx cannot use the path {path}: choose one without spaces and special characters")
    module = "".join(f"load_module {path};\n" for path in MODULES if path.exists())
    # Started by root, nginx would run its workers as a user who cannot enter this directory.
    user = "user root;\n" if os.getuid() == 0 else ""
    head = _HEAD.format(module=module, user=user, directory=directory, connections=_CONNECTIONS, tls=certificates)
    return head + "".join(parts) + "}\n"


def _become_nginx(settings: Settings, text: str) -> NoReturn:
    if "SUPERVISOR_ENABLED" in os.environ:
        end_with_parent()
    program = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if program is None:
        raise BidkeeperError("nginx is not installed (Debian: nginx-light libnginx-mod-stream)")
    tls.client_context(settings.tls_dir)  # so that a fault in the certificates is reported
    directory = settings.relay_files
    held = _prepare(directory)
    (directory / "relay.conf").write_bytes(os.fsencode(text))  # in the path's own bytes, whatever the locale
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asked = {"gateway": settings.gateway_hosts, "facts": settings.facts_hosts, "signer": settings.signer_host}
    if sockets := [directory / f"{program}.sock" for program, hosts in asked.items() if hosts]:
        _watch(sockets, held)
    os.execv(program, ["nginx", "-e", "stderr", "-p", str(directory), "-c", str(directory / "relay.conf")])


def _watch(sockets: list[Path], held: int) -> None:
    """Starts a child that ends this process (nginx by then) once a socket's file is removed or replaced.

    nginx cannot recreate a socket, so the supervisor has to restart it. The child ends with its parent.
    """
    parent = os.getpid()
    if os.fork():
        return
    try:
        end_with_parent(parent, signal.SIGKILL)
        os.close(held)  # because only nginx may hold the lock
        deadline = time.monotonic() + _OPENED_S
        while None in (made := _inodes(sockets)) and time.monotonic() < deadline:
            time.sleep(_LOOK_S / 10)
        while None not in made and _inodes(sockets) == made:
            time.sleep(_LOOK_S)
        print("a socket of the relay was removed or replaced: ends, so as to be started again", file=sys.stderr)
        sys.stderr.flush()
        os.kill(parent, signal.SIGTERM)
    finally:
        os._exit(0)


def _inodes(paths: list[Path]) -> list[int | None]:
    return [path.lstat().st_ino if path.exists() else None for path in paths]


def _prepare(directory: Path) -> int:
    """Creates the directory, closed to other users, and removes a dead relay's sockets, on which nginx would fail.

    Returns the descriptor of the relay's lock. nginx makes its sockets open to all users, so only the directory
    restricts access.
    """
    if not directory.exists():
        directory.mkdir(parents=True)
        directory.chmod(0o710)
    if stat.S_IMODE(directory.stat().st_mode) & 0o007:
        raise BidkeeperError(f"every user can enter {directory} and reach the relay's sockets: chmod 710 it")
    held = hold_lock(directory / "relay.lock")
    if held is None:
        raise BidkeeperError(f"another relay runs in {directory}, or a worker process of one that was killed")
    os.set_inheritable(held, True)  # nginx holds the lock from now on
    for socket in directory.glob("*.sock"):
        socket.unlink()
    return held
