"""Sends a message once, over HTTP or by mail, and reports the outcome without secrets."""

from __future__ import annotations

import logging
import smtplib
import ssl
import time
from collections.abc import Callable, Sequence
from email.message import EmailMessage
from http.client import HTTPException
from typing import NamedTuple
from urllib.parse import urlsplit

import certifi
from msgspec import Struct

from core.hook_receivers import MAIL, NoReceiver, Receivers
from core.public_connection import Connection, NotAllowed
from core.setting_values import Network, is_loopback
from hooks.messages import Post, mail_of, post_of

log = logging.getLogger(__name__)

LONGEST_S = 15.0  # for one try, without the look-up of the host, which only the resolver bounds
_SECONDS_OF_MAIL = 15.0
# Users see no other text if a receiver does not answer, because the true cause would show which ports are open.
NO_ANSWER = "no answer"
NOTED_AFTER_S = LONGEST_S + 1  # for the same reason: a refused connection shows no sooner than a timeout


class Outcome(NamedTuple):
    """The result of a try: the HTTP status, if any, and the error, None if the message was accepted."""

    status: int | None
    error: str | None


class Unanswered(Outcome):
    """The result of a try without an answer; `cause` is for the operator's log only."""

    cause: str

    def __new__(cls, error: Exception) -> Unanswered:
        made = super().__new__(cls, None, NO_ANSWER)
        # The texts of other errors may repeat the address, which may be a secret.
        words = str(error) if isinstance(error, NotAllowed) else getattr(error, "strerror", None)
        made.cause = f"{type(error).__name__}: {words}" if words else type(error).__name__
        return made


class Mailer(Struct, frozen=True):
    """The operator's mail server: `smtps://` begins with TLS, `smtp://` uses STARTTLS."""

    url: str
    password: str
    sender: str

    def send(self, to: str, body: str) -> None:
        """Hands one message to the server. Raises OSError or SMTPException."""
        parts, (subject, text) = urlsplit(self.url), mail_of(body)
        host, context = parts.hostname or "", ssl.create_default_context(cafile=certifi.where())
        message = EmailMessage()
        message["From"], message["To"] = self.sender, to
        message["Subject"] = subject
        message.set_content(text)
        if parts.scheme == "smtps":
            server: smtplib.SMTP = smtplib.SMTP_SSL(host, parts.port or 465, timeout=_SECONDS_OF_MAIL, context=context)
        else:
            server = smtplib.SMTP(host, parts.port or 587, timeout=_SECONDS_OF_MAIL)
        with server:
            if parts.scheme == "smtp" and not is_loopback(host):
                server.starttls(context=context)
            if parts.username:
                server.login(parts.username, self.password)
            server.send_message(message)


class Sender:
    """Sends messages to receivers. Several threads may use it concurrently."""

    def __init__(
        self,
        receivers: Receivers,
        networks: Sequence[Network],
        mailer: Mailer | None,
        clock: Callable[[], float] = time.time,
        public_name: str = "",
    ) -> None:
        self._receivers = receivers
        self._networks = networks
        self._mailer = mailer
        self._clock = clock
        self._public_name = public_name

    def send(self, kind: str, receiver_name: str, body: str, message_id: str) -> Outcome:
        """Tries once to deliver the message `message_id`; never raises."""
        try:
            receiver = self._receivers.read(receiver_name)
            if kind == MAIL:
                return self._mail(receiver.url.partition(":")[2], body)
            return self._post(post_of(kind, receiver, body, int(self._clock()), message_id))
        except NoReceiver as error:
            return Outcome(None, str(error))
        except Exception as error:  # also for a body that cannot be sent, which otherwise would be tried for ever
            if not isinstance(error, (OSError, HTTPException, ValueError, smtplib.SMTPException)):
                log.exception("failed to send by %s", kind)
            if kind != MAIL:
                return Unanswered(error)
            # The error's own text may repeat the address, which may be a secret.
            return Outcome(None, f"failed to send: {type(error).__name__}")

    def _mail(self, to: str, body: str) -> Outcome:
        if self._mailer is None:
            return Outcome(None, "no mail server is set up here")
        self._mailer.send(to, body)
        return Outcome(None, None)

    def _post(self, post: Post) -> Outcome:
        parts = urlsplit(post.url)
        is_tls = parts.scheme == "https"
        connection = Connection(
            parts.hostname or "",
            parts.port or (443 if is_tls else 80),
            is_tls=is_tls,
            networks=self._networks,
            ends_at=time.monotonic() + LONGEST_S,
            public_name=self._public_name,
        )
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            connection.request(
                "POST", path, post.body, {"User-Agent": "bidkeeper", "Connection": "close"} | post.headers
            )
            status = connection.answer().status
        finally:
            connection.close()
        return Outcome(status, None if 200 <= status < 300 else f"answered {status}")
