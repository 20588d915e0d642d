"""The doctor on what lies between this host and the others: its certificates, and whether the others are there."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable, Iterator
from typing import Any

from cli.doctor.check import Check, fail, ok, warn
from core import tls
from core.errors import BidkeeperError
from core.setting_values import HostPort
from core.settings import Settings

PATIENCE_S = 5.0
_SOON_S = 30 * 86_400
_PAGE = "docs/several-machines.md"
NAME = "certificates"


def examine(settings: Settings, clock_ms: Callable[[], int]) -> Iterator[Check]:
    """Examines nothing where everything is on this host. `clock_ms` is this machine's clock (epoch)."""
    if settings.tls_dir is None:
        return
    try:
        client, server = tls.client_context(settings.tls_dir), tls.server_context(settings.tls_dir)
    except BidkeeperError as error:
        yield fail(NAME, str(error), f"create new ones, or correct them ({_PAGE})")
        return
    yield from _certificates(tls.client_context(settings.tls_dir), server, clock_ms() / 1000)
    away = [("gateway", host, tls.TRADER) for host in settings.gateway_hosts]
    away += [("facts", host, tls.TRADER) for host in settings.facts_hosts]
    away += [("signer", host, tls.SIGNER) for host in (settings.signer_host,) if host]
    may_stand_by = {"gateway"} if len(settings.gateway_hosts) > 1 else set()
    for program, host, role in away:
        yield _host(program, host, tls.FarAddress(host, client, role), program in may_stand_by)


def _certificates(client: ssl.SSLContext, server: ssl.SSLContext, now_s: float) -> Iterator[Check]:
    try:
        own = _shown(client, server)
    except ssl.SSLError as error:
        why = getattr(error, "verify_message", "") or error.reason
        yield fail(NAME, f"other hosts refuse this host's: {why}", f"create a new one ({_PAGE})")
        return
    role = tls.role_of(own)
    if not role or ("DNS", role) not in own.get("subjectAltName", ()):
        text = "this host's has no role: its subject and its DNS name must be trader or signer"
        yield fail(NAME, text, f"create a new one ({_PAGE})")
        return
    for whose, certificate in [
        (f"this host's ({role})", own),
        *(("the authority's", ca) for ca in client.get_ca_certs()),
    ]:
        left_s = ssl.cert_time_to_seconds(str(certificate["notAfter"])) - now_s
        text = f"{whose} is valid for {left_s / 86_400:,.0f} more days"
        yield ok(NAME, text) if left_s > _SOON_S else warn(NAME, text, f"renew it before it expires ({_PAGE})")


def _shown(client: ssl.SSLContext, server: ssl.SSLContext) -> dict[str, Any]:
    """Returns this host's certificate, once it has convinced itself of it. Raises SSLError."""
    client.check_hostname = False
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking, answering = client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True)
    for side in (asking, answering, asking, answering):
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return asking.getpeercert() or {}


def _host(program: str, host: HostPort, address: tls.FarAddress, may_stand_by: bool) -> Check:
    name = f"{program} at {host}"
    try:
        with address.connect(PATIENCE_S):
            return ok(name, f"answers, with a certificate for {address.role}")
    except ConnectionRefusedError:
        if may_stand_by:
            return ok(name, "refuses connections: it is on standby or down")
        why = "refuses connections"
    except OSError as error:
        why = error.strerror or str(error)
    return fail(name, f"does not answer: {why}", f"check that its host and the program run ({_PAGE})")
