"""The real nginx with the configuration as it is shipped, on ports of its own, and a stand-in for the servers."""

from __future__ import annotations

import contextlib
import http.client
import re
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.e2e.installation import until
from tests.needs import need, path
from tests.ports import free_ports

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
_GUIDE = DEPLOY.parent / "docs" / "operations.md"
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def nginx() -> str:
    """Returns the path of nginx; skips the test without it."""
    need("nginx")
    return path("nginx")


def for_this_nginx(text: str) -> str:
    """Returns a shipped configuration for this nginx; an old one needs a line of docs/operations.md."""
    said = subprocess.run([nginx(), "-v"], capture_output=True, text=True, check=True).stderr
    found = re.search(r"nginx/(\d+)\.(\d+)\.(\d+)", said)
    assert found, said
    return text if tuple(map(int, found.groups())) >= (1, 25, 1) else by_the_guide(text, "an old nginx")


def by_the_guide(text: str, guide: str) -> str:
    """Returns a configuration after the line of docs/operations.md for `guide`."""
    older, newer = re.findall(r"^sed -i ('.*http2.*') /etc/nginx/nginx.conf$", _GUIDE.read_text(), re.M)
    line = {"an old nginx": older, "Debian 13": newer}[guide]
    return subprocess.run(f"sed {line}", shell=True, input=text, capture_output=True, text=True, check=True).stdout


def put(text: str, **places: str) -> str:
    """`text` with what is shipped replaced; each must be there, so that a change of the shipped text shows."""
    for old, new in places.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def on_free_ports(text: str) -> str:
    """Returns a configuration that listens at ports of loopback that any user may take."""
    listens = r"\blisten (?:\[::\]:)?\d+"
    ports = iter(free_ports(len(re.findall(listens, text))))
    return re.sub(listens, lambda found: f"listen 127.0.0.1:{next(ports)}", text)


def http_in(directory: Path) -> str:
    """Returns the head of nginx's part for HTTP with temporary files in `directory`: the usual ones are root's."""
    return "http {\n" + "".join(f"{name}_temp_path {directory}/{name};\n" for name in TEMPORARY)


def configure(directory: Path, servers: tuple[int, int], change: Callable[[str], str] = str) -> tuple[Path, int]:
    """Writes the shipped configuration to `directory` with ports and paths of this test; gives its file and port."""
    (port,) = free_ports(1)
    text = change((DEPLOY / "nginx.conf").read_text())
    places = {
        "/run/nginx.pid": f"{directory}/nginx.pid",
        "/var/log/nginx": str(directory),
        "http {": http_in(directory),
    }
    if "127.0.0.1:8080" in text:
        places["127.0.0.1:8080"] = f"127.0.0.1:{port}"
    file = directory / "nginx.conf"
    file.write_text(put(text, **places))
    shutil.copytree(DEPLOY / "bidkeeper", directory / "bidkeeper")
    service = directory / "bidkeeper" / "service.conf"
    first, second = (f"127.0.0.1:{server}" for server in servers)
    service.write_text(put(service.read_text(), **{"127.0.0.1:8888": first, "127.0.0.1:8889": second}))
    return file, port


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: str


@dataclass
class Front:
    """nginx at `url`."""

    port: int
    directory: Path
    url: str = ""

    def __post_init__(self) -> None:
        self.url = f"http://127.0.0.1:{self.port}"

    def connection(self, client: str = "127.0.0.1") -> http.client.HTTPConnection:
        """Returns a connection from `client`, an address of this machine's loopback net, each a client of its own."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30, source_address=(client, 0))

    def call(
        self, method: str, path: str, body: bytes | None = None, client: str = "127.0.0.1", **headers: str
    ) -> Answer:
        with contextlib.closing(self.connection(client)) as connection:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            return _answer(connection)

    def at_once(
        self, method: str, path: str, body: bytes, calls: Sequence[dict[str, str]], client: str = "127.0.0.1"
    ) -> list[Answer]:
        """Sends a call with each of these headers, all of them before any answer is read.

        On a busy machine one after another may be no more than what is let through.
        """
        with contextlib.ExitStack() as stack:
            connections = [stack.enter_context(contextlib.closing(self.connection(client))) for _ in calls]
            for connection in connections:
                connection.connect()
            for connection, headers in zip(connections, calls, strict=True):
                connection.request(method, path, body, headers)
            return [_answer(connection) for connection in connections]

    def raw(self, request: bytes) -> bytes:
        """Returns all that comes back for these bytes until nginx closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(request)
            with connection.makefile("rb") as stream:
                return stream.read()


def _answer(connection: http.client.HTTPConnection) -> Answer:
    answer = connection.getresponse()
    text = answer.read().decode()
    # Lower case; one that came twice would show as a list.
    return Answer(answer.status, {name.lower(): answer.headers[name] for name in answer.headers}, text)


@contextlib.contextmanager
def front(servers: tuple[int, int], change: Callable[[str], str] = str) -> Iterator[Front]:
    program = nginx()
    directory = Path(tempfile.mkdtemp(prefix="bk-nginx-"))
    directory.chmod(0o755)
    file, port = configure(directory, servers, change)
    process = subprocess.Popen([program, "-c", file, "-p", directory, "-g", "daemon off;"], stderr=subprocess.PIPE)
    try:
        until(lambda: process.poll() is not None or _listens(port), "nginx listens")
        assert process.poll() is None, process.stderr and process.stderr.read().decode()
        yield Front(port, directory)
    finally:
        process.terminate()
        process.communicate(timeout=30)
        shutil.rmtree(directory)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@dataclass
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class StandIn:
    """A stand-in with the requests that reached it; `behave` answers on the handler, and by default says 200."""

    port: int = 0
    seen: list[Seen] = field(default_factory=list)
    behave: Callable[[BaseHTTPRequestHandler], None] | None = None


@contextlib.contextmanager
def stand_in() -> Iterator[StandIn]:
    """A server that keeps what it is asked."""
    state = StandIn()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            state.seen.append(Seen(self.command, self.path, dict(self.headers), body))
            if state.behave is not None:
                state.behave(self)
                return
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = answer

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
