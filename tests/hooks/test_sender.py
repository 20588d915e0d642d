"""One try to deliver: to whom it may go, what goes over the wire, and what becomes of a receiver that misbehaves."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import ipaddress
import json
import os
import re
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from cli.api import problem
from core import public_connection as connection
from core.hook_receivers import (
    KINDS,
    MAIL,
    NoReceiver,
    Receiver,
    Receivers,
    new_secret,
    secret_problem,
    shown,
    url_problem,
)
from core.setting_values import HostPort
from hooks import sender
from hooks.messages import Post, post_of, signature
from hooks.sender import Mailer, Outcome, Sender, Unanswered
from models.hooks import table
from models.hooks.table import CODE, Delivery, Hook, Send
from tests.certificates import made_for
from tests.e2e.installation import until
from tests.hooks.receiver import LOOPBACK, Got, mail_server, receiver
from tests.hooks.receiver import Receiver as Listener
from tests.hooks.test_courier import NOW, World, make_hook
from tests.ports import free_ports

BODY = json.dumps({"id": 5, "event": "fill", "at": "x", "user": "bc1q", "task": 7, "text": "Bought 1", "data": {}})


@pytest.fixture
def listener() -> Iterator[Listener]:
    with receiver() as made:
        yield made


@pytest.fixture
def receivers(tmp_path: Path) -> Receivers:
    return Receivers(tmp_path / "hooks")


def try_once(receivers: Receivers, url: str, kind: str = "webhook", *, allowed: bool = True) -> Outcome:
    name = receivers.keep(Receiver(url, "s3cret"))
    return Sender(receivers, LOOPBACK if allowed else (), None, lambda: 1_700_000_000).send(kind, name, BODY, "msg_1")


def cause(outcome: Outcome) -> str:
    """Returns the cause that the operator's log has of a try without an answer; its user is shown none."""
    assert outcome == (None, "no answer") and isinstance(outcome, Unanswered)
    return outcome.cause


def test_a_webhook_gets_the_body_and_a_signature_that_covers_its_time(listener: Listener, receivers: Receivers) -> None:
    assert try_once(receivers, listener.url) == (200, None)
    [got] = listener.got
    expected = hmac.new(b"s3cret", b"1700000000." + BODY.encode(), hashlib.sha256).hexdigest()
    assert (got.path, got.body) == ("/hook?a=b", BODY)
    assert got.headers["X-Bidkeeper-Signature"] == f"t=1700000000,v1={expected}"
    assert got.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("secret", "of_library"),
    [
        (MADE := new_secret(), MADE),
        # A secret in any other form is the key itself, and a receiver writes it in theirs.
        ("s3cret", "whsec_" + base64.b64encode(b"s3cret").decode()),
        ("kept-from_before-as-token_urlsafe", "whsec_a2VwdC1mcm9tX2JlZm9yZS1hcy10b2tlbl91cmxzYWZl"),
    ],
)
def test_a_library_of_standard_webhooks_takes_a_webhook(
    listener: Listener, receivers: Receivers, secret: str, of_library: str
) -> None:
    name, body = receivers.keep(Receiver(listener.url, secret)), BODY.replace("Bought", "Bought é")
    assert Sender(receivers, LOOPBACK, None).send("webhook", name, body, "msg_1") == (200, None)
    [got] = listener.got
    library = Webhook(of_library)
    assert library.verify(got.body, got.headers) == json.loads(body)
    assert got.headers["webhook-id"] == "msg_1"
    for name in ("webhook-id", "webhook-timestamp"):
        with pytest.raises(WebhookVerificationError):
            library.verify(got.body, got.headers | {name: got.headers[name] + "0"})
    with pytest.raises(WebhookVerificationError):
        library.verify(got.body + " ", got.headers)
    given = dict(part.split("=") for part in got.headers["X-Bidkeeper-Signature"].split(","))
    own = hmac.new(secret.encode(), f"{given['t']}.{got.body}".encode(), hashlib.sha256).hexdigest()
    assert given["v1"] == own, "our own signature has the secret's text as its key, in whichever form"


@pytest.mark.slow
def test_the_receiver_of_the_documents_takes_a_webhook_once(receivers: Receivers) -> None:
    document = (Path(sender.__file__).parents[1] / "docs" / "hooks.md").read_text()
    [code] = [block for block in re.findall(r"```python\n(.*?)```", document, re.S) if "standardwebhooks" in block]
    secret, (port,) = new_secret(), free_ports(1)
    code = code.replace("whsec_...", secret).replace("9000", str(port))
    program = subprocess.Popen([sys.executable, "-u", "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        until(lambda: problem(HostPort("127.0.0.1", port), "") is not None, "the receiver listens")
        name, other = (receivers.keep(Receiver(f"http://127.0.0.1:{port}/", each)) for each in (secret, new_secret()))
        send = Sender(receivers, LOOPBACK, None).send
        assert [send("webhook", name, BODY, "msg_1").status for _ in range(2)] == [204, 204]
        assert send("webhook", other, BODY, "msg_2").status == 401
    finally:
        program.terminate()
    assert program.communicate(timeout=60)[0] == "Bought 1\n"
    [derive] = re.findall(r"`(printf 'whsec_.*?)`", document)
    derived = subprocess.check_output(["bash", "-c", derive], env={"SECRET": "s3cret+"}, text=True)
    assert derived.strip() == "whsec_" + base64.b64encode(b"s3cret+").decode()


def test_the_time_of_a_webhook_is_that_of_the_try(listener: Listener, receivers: Receivers) -> None:
    name = receivers.keep(Receiver(listener.url, "s3cret"))
    times = iter((1_700_000_000.9, 1_700_000_010.0))
    sender = Sender(receivers, LOOPBACK, None, lambda: next(times))
    for _ in range(2):
        sender.send("webhook", name, BODY, "msg_1")
    assert [got.headers["webhook-timestamp"] for got in listener.got] == ["1700000000", "1700000010"]
    first, second = (got.headers["webhook-signature"] for got in listener.got)
    assert first != second


def test_other_receivers_get_no_signature(listener: Listener, receivers: Receivers) -> None:
    assert try_once(receivers, listener.url, "ntfy").error is None
    assert not [name for name in listener.got[0].headers if name.lower().startswith("webhook-")]


def test_notifications_and_chats_get_a_line_for_people(listener: Listener, receivers: Receivers) -> None:
    assert try_once(receivers, listener.url, "ntfy").error is None
    assert try_once(receivers, listener.url, "discord").error is None
    ntfy, discord = listener.got
    assert (ntfy.body, ntfy.headers["Authorization"]) == ("Bought 1 (task 7)", "Bearer s3cret")
    assert discord.json == {"content": "Bought 1 (task 7)", "allowed_mentions": {"parse": []}}
    telegram = post_of("telegram", Receiver("telegram:-100", "12:abc"), BODY, 1, "")
    assert telegram.url == "https://api.telegram.org/bot12:abc/sendMessage"
    assert json.loads(telegram.body) == {
        "chat_id": "-100",
        "text": "Bought 1 (task 7)",
        "disable_web_page_preview": True,
    }
    assert "abc" not in repr(telegram)


@pytest.mark.parametrize("status", [301, 302, 307, 400, 404, 429, 500])
def test_no_redirect_is_followed_and_only_2xx_is_delivered(
    listener: Listener, receivers: Receivers, status: int
) -> None:
    listener.behave = lambda handler, got: status
    assert try_once(receivers, listener.url) == (status, f"answered {status}")
    assert len(listener.got) == 1


def test_this_machine_is_not_asked_unless_the_operator_allows_it(listener: Listener, receivers: Receivers) -> None:
    for host in ("127.0.0.1", "localhost", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]"):
        outcome = try_once(receivers, f"http://{host}:{listener.port}/", allowed=False)
        assert (outcome, "which users may not reach" in cause(outcome)) == ((None, "no answer"), True), host
    assert listener.got == []


def test_a_name_with_one_private_address_is_refused_and_looked_up_once(
    receivers: Receivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def found(*addresses: str) -> None:
        def getaddrinfo(host: str, port: int, **given: object) -> list[object]:
            asked.append(host)
            return [(2, 1, 6, "", (address, port)) for address in addresses]

        monkeypatch.setattr(connection.socket, "getaddrinfo", getaddrinfo)

    connected: list[str] = []

    def create_connection(address: tuple[str, int], timeout: float) -> socket.socket:
        connected.append(address[0])
        raise ConnectionRefusedError

    monkeypatch.setattr(connection.socket, "create_connection", create_connection)
    found("93.184.216.34", "10.0.0.1")
    assert "leads to 10.0.0.1" in cause(try_once(receivers, "https://mixed.example/"))
    assert connected == []

    found("93.184.216.34", "93.184.216.35")
    assert cause(try_once(receivers, "https://good.example/")) == "ConnectionRefusedError"
    # The addresses themselves, so that no second answer of the name's owner counts.
    assert (connected, asked) == (["93.184.216.34", "93.184.216.35"], ["mixed.example", "good.example"])

    found("93.184.216.34")
    connected.clear()
    assert "port 80" in cause(try_once(receivers, "http://plain.example/"))
    assert "plain http" in cause(try_once(receivers, "http://plain.example:8080/"))
    assert connected == []


def test_every_fault_of_connecting_looks_the_same_to_a_user(
    receivers: Receivers, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "LONGEST_S", 1.0)
    over = threading.Event()
    listener.behave = lambda handler, got: over.wait(20) and None  # type: ignore[assignment,return-value]
    with socket.socket() as closed, socket.create_server(("127.0.0.1", 0)) as other:
        closed.bind(("127.0.0.1", 0))
        port, silent = closed.getsockname()[1], other.getsockname()[1]
        urls = {
            f"http://127.0.0.1:{port}/": "ConnectionRefusedError",
            f"http://127.0.0.1:{silent}/": "TimeoutError",
            f"https://127.0.0.1:{silent}/": "TimeoutError",
            listener.url: "TimeoutError",
            f"https://127.0.0.1:{listener.port}/": "SSLError",
            "http://no-such-name.invalid/": "gaierror",
            "http://10.0.0.1/": "NotAllowed",
        }
        for url, true in urls.items():
            assert cause(try_once(receivers, url)).partition(":")[0] == true, url
    over.set()


@pytest.mark.slow
def test_a_receiver_that_drips_or_says_nothing_is_left(
    listener: Listener, receivers: Receivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "LONGEST_S", 0.4)
    over = threading.Event()

    def drip(handler: object, got: Got) -> None:
        while not over.wait(0.05):
            handler.wfile.write(b"H")  # type: ignore[attr-defined]
            handler.wfile.flush()  # type: ignore[attr-defined]

    for behave in (drip, lambda handler, got: over.wait(20) and None):
        listener.behave = behave  # type: ignore[assignment]
        began = time.monotonic()
        outcome = try_once(receivers, listener.url)
        assert outcome.status is None and outcome.error
        assert time.monotonic() - began < 10
    over.set()


def test_what_is_no_http_is_an_error_like_any_other(listener: Listener, receivers: Receivers) -> None:
    def nonsense(handler: object, got: Got) -> None:
        handler.wfile.write(b"\0" * 200_000)  # type: ignore[attr-defined]

    listener.behave = nonsense
    assert cause(try_once(receivers, listener.url)).partition(":")[0] in (
        "BadStatusLine",
        "LineTooLong",
        "ConnectionResetError",
    )


def test_an_outcome_never_repeats_a_secret(receivers: Receivers) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/s3cret"
        assert "s3cret" not in str(try_once(receivers, url))
    assert Sender(receivers, (), None).send("webhook", "f" * 32, BODY, "").error == (
        "the receiver's file cannot be read: FileNotFoundError"
    )


def test_receivers_are_for_our_own_user_and_go_with_their_hook(receivers: Receivers, tmp_path: Path) -> None:
    name = receivers.keep(Receiver("https://a.example/token", "s"))
    path = tmp_path / "hooks" / name
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert receivers.read(name) == Receiver("https://a.example/token", "s")
    assert "token" not in repr(receivers.read(name))
    orphan = receivers.keep(Receiver("https://b.example/"))
    receivers.forget_all_but({name})
    assert receivers.read(orphan)  # its hook may be about to be made
    os.utime(tmp_path / "hooks" / orphan, (0, 0))
    os.utime(path, (0, 0))
    receivers.forget_all_but({name})
    with pytest.raises(NoReceiver):
        receivers.read(orphan)
    receivers.forget(name)
    with pytest.raises(NoReceiver):
        receivers.read(name)


def test_addresses_of_each_kind() -> None:
    good = {
        "webhook": "https://hooks.example:8443/in?key=5",
        "ntfy": "https://ntfy.sh/topic",
        "discord": "https://discord.com/api/webhooks/1/abc",
        "telegram": "telegram:-1001234",
        "mail": "mailto:ann.b+x@mail.example",
    }
    assert set(good) == set(KINDS)
    for kind, url in good.items():
        assert url_problem(kind, url, ()) is None
    for url in (
        "http://hooks.example/",
        "https:///x",
        "ftp://a.example/",
        "https://user:pw@a.example/",
        "https://a.example/#x",
        "https://a.example/a b",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://169.254.169.254/latest",
        "https://a.example:99999/",
        "https://a.example/" + "x" * 1000,
        "https://ä.example/",
        "telegram:5",
    ):
        assert url_problem("webhook", url, ()), url
    assert url_problem("webhook", "http://10.0.0.5/", (ipaddress.ip_network("10.0.0.0/8"),)) is None
    for bad in ("mailto:a@b\r\nBcc: c@d.e", "mailto:a", "mailto:a@b.example,c@d.example", "a@b.example"):
        assert url_problem(MAIL, bad, ()), bad
    assert shown("https://discord.com/api/webhooks/1/abc") == "https://discord.com/..."
    assert shown("mailto:a@b.example") == "mailto:a@b.example"


def test_secrets_of_each_kind() -> None:
    assert [secret_problem(kind, "") is None for kind in KINDS] == [True, True, False, True, True]
    assert secret_problem("telegram", "123:" + "a" * 35) is None
    assert secret_problem("discord", "x") and secret_problem("mail", "x") and secret_problem("ntfy", "a\r\nb")
    assert secret_problem("webhook", new_secret()) is None and secret_problem("webhook", "any other text") is not None
    for wrong in ("", "notbase64!", base64.b64encode(b"k" * 23).decode(), base64.b64encode(b"k" * 65).decode()):
        assert secret_problem("webhook", f"whsec_{wrong}") == "must have base64 of 24 to 64 bytes after whsec_", wrong
        assert secret_problem("ntfy", f"whsec_{wrong}") is None, "only a webhook's secret is a key"


def test_mail_is_handed_to_the_operators_server(receivers: Receivers) -> None:
    name = receivers.keep(Receiver("mailto:ann@mail.example"))
    with mail_server() as server:
        mailer = Mailer(server.url, "", "bot@mail.example")
        assert Sender(receivers, (), mailer).send("mail", name, BODY, "") == (None, None)
        [mail] = server.got
    assert (mail.to, mail.subject) == ("ann@mail.example", "Bidkeeper: Bought 1 (task 7)")
    assert Sender(receivers, (), None).send("mail", name, BODY, "").error == "no mail server is set up here"


def test_a_signature_is_as_documented() -> None:
    digest = hmac.new(b"k", b"5.{}", hashlib.sha256).hexdigest()
    assert signature("k", 5, "{}") == f"t=5,v1={digest}"
    assert "k" not in repr(Post("https://k/", b"", {"a": "k"})).replace("Post(body=b'')", "")


def test_a_certificate_that_nobody_vouches_for_is_refused(receivers: Receivers, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made_for("localhost", tmp_path))
    heard: list[bytes] = []

    def serve(listener: socket.socket) -> None:
        peer, _ = listener.accept()
        with peer, contextlib.suppress(OSError), context.wrap_socket(peer, server_side=True) as secure:
            heard.append(secure.recv(100))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        outcome = try_once(receivers, f"https://localhost:{listener.getsockname()[1]}/")
        thread.join(20)
    assert (cause(outcome).partition(":")[0], heard) == ("SSLCertVerificationError", [])


def test_a_body_that_makes_no_mail_is_a_failed_try(receivers: Receivers, caplog: pytest.LogCaptureFixture) -> None:
    with mail_server() as server:
        send = Sender(receivers, LOOPBACK, Mailer(server.url, "", "bot@mail.example")).send
        outcome = send(MAIL, receivers.keep(Receiver("mailto:ann@mail.example")), '{"event": "code"}', "msg_1")
    assert outcome == (None, "failed to send: KeyError") and caplog.records[0].exc_info, "the log has its cause"


ANN = "mailto:ann@mail.example"
DAY_S = 86_400


@pytest.fixture
def world(database: str) -> World:
    made = World()
    make_hook(1)  # so that the users have these numbers
    return made


def send_codes(count: int, address_of: Callable[[int], str], first_user: int = 100) -> None:
    """Notes a code for each of `count` strangers."""
    for number in range(count):
        table.note(first_user + number, CODE, address_of(number), NOW)


def wait_s(user_id: int, address: str, after_s: int = 400) -> int:
    return table.code_wait_s(user_id, address, NOW + 1000 * after_s)


async def test_strangers_codes_do_not_hold_those_of_a_user_who_confirmed_the_address(world: World) -> None:
    hook = make_hook(1, kind="mail", shown=ANN)
    assert table.store(hook, "K7QM-3XWP", NOW) and table.confirm(hook, "K7QM-3XWP", NOW, may_still=lambda: True)
    send_codes(3, lambda _: ANN)
    assert wait_s(2, ANN) == DAY_S - 400, "another user waits"
    assert wait_s(1, "mailto:Ann+tag@mail.example", 0) == 0
    for _ in range(3):
        table.note(1, CODE, ANN, NOW)
    assert wait_s(1, ANN) == DAY_S - 400, "three a day"
    assert wait_s(2, "mailto:bob@mail.example") == 0
    table.note(3, "webhook", None, NOW + 10 * 1000 * DAY_S)
    assert [row.kind for row in Send.select().where(Send.user_id == 1)] == ["own"], "it is kept"
    assert table.code_wait_s(1, ANN, NOW + 10 * 1000 * DAY_S) == 0


async def test_strangers_codes_do_not_hold_the_code_of_a_hook_from_before_codes(world: World) -> None:
    hook = make_hook(1, kind="mail", shown=ANN)
    Delivery.delete().execute()
    send_codes(3, lambda _: ANN)
    await world.work()
    assert [receiver for receiver, _ in world.sent] == [hook.receiver]
    assert Hook.get_by_id(hook.id).code_hash is not None


async def test_a_domain_and_an_installation_have_a_bound_of_codes_a_day(world: World) -> None:
    send_codes(99, lambda number: f"mailto:a{number}@mail.example")
    assert wait_s(1, "mailto:new@mail.example") == 0
    send_codes(1, lambda _: "mailto:last@mail.example")
    assert wait_s(1, "mailto:new@mail.example") == DAY_S - 400
    assert wait_s(1, "mailto:new@other.example") == 0
    send_codes(199, lambda number: f"mailto:a@{number}.example")
    assert wait_s(1, "mailto:new@other.example") == 0
    send_codes(1, lambda _: "mailto:last@last.example")
    assert wait_s(1, "mailto:new@other.example") == DAY_S - 400
    table.remember(1, "mailto:new@other.example")
    assert wait_s(1, "mailto:new@other.example") == 0


def test_spellings_of_one_gmail_address_are_one_address() -> None:
    same = ("victim@gmail.com", "v.ictim@gmail.com", "V.I.ctim+a.b@googlemail.com")
    assert len({table.hash_of(f"mailto:{address}") for address in same}) == 1
    assert table.hash_of("mailto:vi.ctim@mail.example") != table.hash_of("mailto:victim@mail.example")
