"""`bidkeeper server|manager|gateway|facts|signer|hooks|simulator`: one program, until SIGTERM or SIGINT."""

from __future__ import annotations

import argparse
import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from msgspec.structs import replace

from core import files, logs
from core.process import PARENT, end_with_parent
from core.settings import MOST_SLOTS, Settings
from models.database import servers

_OF_DATABASE = ("server", "manager", "hooks")  # these run as one user, who may write to the data directory


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds the program's own arguments."""
    if verb == "server":
        parser.add_argument("--index", type=int, default=0, help="which of the server processes this is, from 0")
    if verb == "manager":
        text = "run only the tasks of this slot's users (from 0); on standby while another manager holds it"
        parser.add_argument("--slot", type=int, choices=range(MOST_SLOTS), metavar="N", help=text)


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Runs the program named by the verb."""
    if PARENT in os.environ:
        end_with_parent(int(os.environ[PARENT]))
    elif "SUPERVISOR_ENABLED" in os.environ:
        # A killed supervisord leaves its programs running without anything to restart them, so they end with it.
        end_with_parent()
    if "SUPERVISOR_ENABLED" in os.environ:
        logs.stop_when_short(settings.log_dir)  # the directory to which supervisord writes our lines
    os.environ["BIDKEEPER_DATA_DIR"] = str(settings.data_dir)
    for directory in (settings.data_dir, settings.run_dir, settings.log_dir):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if options.verb in _OF_DATABASE:
        servers.keep_in(settings.data_dir / servers.TIMELINES_FILE)
    elif options.verb == "gateway":  # the gateway's user may be another one
        servers.keep_in(settings.quota_file.with_name(servers.TIMELINES_FILE))
    gc.disable()  # saves a tenth of a program's start; later collections skip the modules' objects
    try:
        start = _PROGRAMS[options.verb](settings, options)
    finally:
        gc.freeze()
        gc.enable()
    start()
    return 0


# Each function imports its program and returns the function that runs it.


def _server(settings: Settings, options: argparse.Namespace) -> Callable[[], object]:
    from server.app import run

    return partial(run, settings, options.index)


def _manager(settings: Settings, options: argparse.Namespace) -> Callable[[], object]:
    from workers.manager.manager import run

    def start() -> None:
        with files.kept_reserve(settings.data_dir):
            run(settings if options.slot is None else replace(settings, slot=options.slot))

    return start


def _gateway(settings: Settings, options: argparse.Namespace) -> Callable[[], object]:
    from core import tls
    from gateway.app import run
    from markets.http import AFTERMATH_S
    from models.database import base
    from models.leases import leases
    from models.leases.held_lease import HeldLease, claim, wait_out
    from models.tasks import tasks

    def least_token(task_id: int) -> int:
        # The gateway may only read the database, and rarely does, so it holds no connection open.
        with base.reading(settings.database_url):
            return tasks.least_token(task_id)

    if settings.gateway_listen:
        tls.server_context(settings.tls_dir)  # so that a fault shows now and not at the first connection

    @contextmanager
    def right() -> Iterator[HeldLease]:
        holder = leases.holder_in(settings.own_gateway_socket.parent)
        lease = claim(settings.database_url, leases.GATEWAY, holder, settings.lease_seconds, waits=True, kind="gateway")
        wait_out(lease, AFTERMATH_S)
        try:
            yield lease
        finally:
            lease.release()

    return partial(run, settings, least_token, right=right)


def _facts(settings: Settings, options: argparse.Namespace) -> Callable[[], object]:
    from gateway.facts_program import run

    return partial(run, settings)


def _hooks(settings: Settings, options: argparse.Namespace) -> Callable[[], object]:
    from hooks.program import run

    return partial(run, settings)


def _signer(settings: Settings, options: argparse.Namespace) -> Callable[[], object]:
    from wallet.signer.signer_process import run
    from wallet.terms import ceilings_of

    return partial(
        run,
        settings.signer_files,
        settings.own_signer_socket,
        market=settings.market,
        ceilings=ceilings_of(settings),
        facts_socket=settings.facts_socket,
        allowed_uids=settings.signer_clients or None,
        passphrase_file=settings.keystore_passphrase_file,
    )


def _simulator(settings: Settings, options: argparse.Namespace) -> Callable[[], object]:
    from simulator.app import run

    return partial(
        run,
        port=settings.simulator_port,
        seed=settings.simulator_seed,
        background=settings.simulator_background,
        seller_fee_ppm=settings.simulator_seller_fee_ppm,
        scenes=settings.simulator_scenes,
        state_file=settings.data_dir / "simulator.json",
    )


_PROGRAMS = {
    "server": _server,
    "manager": _manager,
    "gateway": _gateway,
    "facts": _facts,
    "hooks": _hooks,
    "signer": _signer,
    "simulator": _simulator,
}
