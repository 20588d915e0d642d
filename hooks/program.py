"""The hooks process: it sends events to their users' receivers, and holds the receivers' secrets."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time

from core.call import Verbs
from core.errors import BidkeeperError, SettingsError
from core.fields import NotText, read_text
from core.hook_receivers import Receivers
from core.local_server import serve
from core.process import hold_lock
from core.program_calls import DeliveryCounts, HooksReadiness, PingHooks
from core.settings import Settings
from hooks.courier import Courier
from hooks.sender import Mailer, Sender
from models import schema
from models.database import base
from models.hooks import queue
from models.leases import leases
from models.leases.held_lease import HeldLease, claim

log = logging.getLogger(__name__)

_ALIVE_S = 1.0  # between two reports to the lease that this process is alive


def now_ms() -> int:
    """Returns milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def run(settings: Settings) -> None:
    """Runs until SIGTERM or SIGINT; unfinished tries are repeated at the next start.

    Waits while another hooks program runs on another machine. Raises BidkeeperError if one runs in this data directory,
    or the database has another version.
    """
    lock = hold_lock(settings.run_dir / "hooks.lock")
    if lock is None:
        raise BidkeeperError(f"another hooks program runs in {settings.data_dir}")
    receivers = Receivers(settings.hooks_dir)
    sender = Sender(receivers, settings.hook_networks, mailer_of(settings), public_name=settings.public_name)
    lease = claim(
        settings.database_url,
        leases.HOOKS,
        leases.holder_in(settings.run_dir),
        settings.lease_seconds,
        waits=True,
        kind="hooks program",
    )
    base.connect_in_time(settings.database_url)
    try:
        schema.check()
        receivers.forget_all_but(queue.all_receivers())
        asyncio.run(_serve(settings, Courier(sender.send, now_ms), lease))
        lease.release()
    finally:
        base.close()
        os.close(lock)
    logging.shutdown()
    os._exit(0)  # a normal exit would wait for threads that still wait for receivers


def mailer_of(settings: Settings) -> Mailer | None:
    """Returns the operator's mail server, or None without one. Raises SettingsError."""
    if settings.smtp_url is None:
        return None
    password = ""
    if settings.smtp_password_file is not None:
        try:
            password = read_text(settings.smtp_password_file).strip()
        except OSError as error:
            raise SettingsError([f"BIDKEEPER_SMTP_PASSWORD_FILE cannot be read: {error.strerror}"]) from error
        except NotText as error:
            raise SettingsError([f"{settings.smtp_password_file} (BIDKEEPER_SMTP_PASSWORD_FILE) {error}"]) from error
        if not password.isascii():
            text = f"the password in {settings.smtp_password_file} (BIDKEEPER_SMTP_PASSWORD_FILE) must be ASCII"
            raise SettingsError([f"{text}: sign-in to a mail server sends nothing else"])
    return Mailer(settings.smtp_url, password, settings.mail_from)


async def _serve(settings: Settings, courier: Courier, lease: HeldLease) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server = await serve(settings.hooks_socket, Verbs("hooks", {PingHooks: ping}))
    work = asyncio.create_task(courier.run())
    log.info("ready")
    try:
        while not stop.is_set():
            lease.alive()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _ALIVE_S)
    finally:
        server.close()
        work.cancel()


def ping(asked: PingHooks) -> HooksReadiness:
    """Answers that the program is ready, with the counts of deliveries by state."""
    return HooksReadiness("ready", DeliveryCounts(**queue.counts_of_all()))
