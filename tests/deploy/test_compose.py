"""The compose file says what the other installations say; with podman, image and containers are made and run."""

from __future__ import annotations

import json
import os
import re
import shutil
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.settings import IN_FILES, OPTIONS
from tests.certificates import made_for
from tests.deploy.front import DEPLOY, by_the_guide, for_this_nginx, http_in, nginx, on_free_ports, put
from tests.deploy.house import debian
from tests.e2e.installation import until
from tests.needs import need, need_root
from tests.ports import free_ports

COMPOSE = DEPLOY / "compose"
FILE: dict[str, Any] = yaml.safe_load((COMPOSE / "compose.yaml").read_text())
BASE = "localhost/bidkeeper-test-base"


def variables(text: str) -> set[str]:
    return set(re.findall(r"^#?(BIDKEEPER_\w+)=", text, re.M))


def test_it_knows_only_settings_that_there_are() -> None:
    known = {option.variable for option in OPTIONS} | {f"BIDKEEPER_{name.upper()}_FILE" for name in IN_FILES}
    named = variables((COMPOSE / "environment.example").read_text()) | set(FILE["services"]["bidkeeper"]["environment"])
    assert named <= known


def test_its_settings_are_those_of_the_service() -> None:
    """The exceptions are paths, users who may ask, and which programs run: in the container all do, as one user."""
    service = variables((DEPLOY / "environment").read_text())
    apart = {name for name in service if name.endswith(("_DIR", "_CLIENTS"))}
    apart |= {name for name in service if name.startswith("BIDKEEPER_WITH_")}
    apart |= {"BIDKEEPER_SLOTS", "BIDKEEPER_SERVER_PROCESSES", "BIDKEEPER_CONFIG"}
    assert variables((COMPOSE / "environment.example").read_text()) == service - apart


def test_nginx_knows_as_many_servers_as_run_and_shares_their_loopback() -> None:
    servers = re.findall(r"server 127\.0\.0\.1:(\d+)", (DEPLOY / "bidkeeper" / "service.conf").read_text())
    environment = FILE["services"]["bidkeeper"]["environment"]
    assert len(servers) == int(environment["BIDKEEPER_SERVER_PROCESSES"])
    assert environment["BIDKEEPER_HOST"] == "127.0.0.1"
    assert FILE["services"]["nginx"]["network_mode"] == "service:bidkeeper"


@pytest.mark.parametrize(
    "page", [DEPLOY / "Dockerfile", COMPOSE / "compose.yaml", DEPLOY.parent / "docs/operations.md"]
)
def test_who_runs_a_proxy_elsewhere_is_told_to_name_it(page: Path) -> None:
    """Without that all clients are one to the limits of sign-in, and a stranger uses them up for everybody."""
    assert "BIDKEEPER_TRUSTED_PROXIES" in page.read_text()


def test_what_the_unit_gives_the_container_has_too() -> None:
    unit = (DEPLOY / "bidkeeper.service").read_text()
    bidkeeper = FILE["services"]["bidkeeper"]
    assert f"LimitNOFILE={bidkeeper['ulimits']['nofile']}" in unit
    assert f"TasksMax={bidkeeper['pids_limit']}" in unit
    assert f"TimeoutStopSec={bidkeeper['stop_grace_period'].removesuffix('s')}" in unit
    assert bidkeeper["ulimits"]["memlock"] == -1 and "LimitMEMLOCK=infinity" in unit
    assert bidkeeper["read_only"] and bidkeeper["cap_drop"] == ["ALL"]
    assert "NoNewPrivileges=yes" in unit and bidkeeper["security_opt"] == ["no-new-privileges:true"]


def test_the_health_check_is_the_images() -> None:
    image = re.search(r"^HEALTHCHECK .*\\\n +CMD (\[.*\])$", (DEPLOY / "Dockerfile").read_text(), re.M)
    assert image
    assert FILE["services"]["bidkeeper"]["healthcheck"]["test"] == ["CMD", *json.loads(image[1])]


def test_nginx_takes_its_configuration(tmp_path: Path) -> None:
    certificate(tmp_path)
    text = put(
        for_this_nginx((COMPOSE / "nginx.conf").read_text()),
        **{
            "user nginx;": "",
            "/run/nginx.pid": f"{tmp_path}/pid",
            "/etc/nginx/tls": str(tmp_path),
            "http {": http_in(tmp_path),
        },
    )
    (tmp_path / "nginx.conf").write_text(on_free_ports(text))
    shutil.copytree(DEPLOY / "bidkeeper", tmp_path / "bidkeeper")
    tried = subprocess.run([nginx(), "-t", "-c", tmp_path / "nginx.conf"], capture_output=True, text=True)
    assert tried.returncode == 0, tried.stderr
    assert "[warn]" not in tried.stderr


def certificate(directory: Path) -> None:
    made = made_for("bidkeeper.example", directory)
    for name in ("privkey.pem", "fullchain.pem"):
        shutil.copy(made, directory / name)


class Containers:
    """The compose file's containers, from an image made of this checkout on a Debian that is at hand."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.http, self.https = free_ports(2)
        shutil.copytree(DEPLOY, directory / "deploy")
        self.place = directory / "deploy" / "compose"
        example = (self.place / "environment.example").read_text()
        (self.place / "environment").write_text(put(example, **{"WHITELIST=": "WHITELIST=*"}))
        for name in ("tls", "secrets"):
            (self.place / name).mkdir()
        certificate(self.place / "tls")
        # The test's own Debian has an old nginx.
        nginx_conf = self.place / "nginx.conf"
        nginx_conf.write_text(by_the_guide(nginx_conf.read_text(), "an old nginx"))
        (directory / "over.yaml").write_text(self._over())
        (directory / "storage.conf").write_text(
            f'[storage]\ndriver = "vfs"\ngraphroot = "{directory}/root"\nrunroot = "{directory}/run"\n'
        )
        (directory / "containers.conf").write_text('[engine]\ncgroup_manager = "cgroupfs"\nruntime = "runc"\n')
        self.environment = {
            **os.environ,
            "CONTAINERS_CONF": str(directory / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(directory / "storage.conf"),
        }

    def _over(self) -> str:
        """Writes an override: this test's ports, the open files that a tester may have, and the images made here."""
        limits = {"memlock": 65536, "nofile": 16384, "nproc": 4096}
        check = {"disable": True}
        services = {
            "bidkeeper": {"image": "localhost/bidkeeper", "ulimits": limits, "healthcheck": check},
            "nginx": {"image": "localhost/bidkeeper-test-nginx", "ulimits": limits, "healthcheck": check},
        }
        ports = f'["127.0.0.1:{self.http}:80", "127.0.0.1:{self.https}:443"]'
        text = yaml.safe_dump({"services": services})
        return text.replace("  bidkeeper:\n", f"  bidkeeper:\n    ports: !override {ports}\n", 1)

    def run(self, *command: str, **more: Any) -> str:
        done = subprocess.run(
            command, cwd=self.place, env=self.environment, capture_output=True, text=True, timeout=600, **more
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def compose(self, *words: str) -> str:
        return self.run("podman-compose", "-f", "compose.yaml", "-f", str(self.directory / "over.yaml"), *words)

    def build(self, root: Path) -> None:
        """Builds the image by the Dockerfile, on `root` instead of a base from the internet, and nginx beside it."""
        with subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE) as tar:
            self.run("podman", "import", "-", BASE, stdin=tar.stdout)
        assert tar.returncode == 0
        given = [f"--env={name}={value}" for name, value in os.environ.items() if name.startswith("PIP_")]
        certificates = "/etc/ssl/certs:/etc/ssl/certs:ro"
        build = (
            "podman",
            "build",
            "--isolation",
            "chroot",
            "--layers=false",
            "-q",
            f"--build-arg=BASE={BASE}",
            "-v",
            certificates,
        )
        self.run(*build, *given, "-f", str(DEPLOY / "Dockerfile"), "-t", "localhost/bidkeeper", str(DEPLOY.parent))
        file = self.directory / "Nginxfile"
        lines = [f"FROM {BASE}", "RUN useradd --system --no-create-home nginx", "STOPSIGNAL SIGQUIT"]
        file.write_text("\n".join([*lines, 'CMD ["nginx", "-g", "daemon off;"]']))
        self.run(*build, "-f", str(file), "-t", "localhost/bidkeeper-test-nginx", str(self.directory))

    def get(self, path: str) -> tuple[int, dict[str, str]]:
        """Returns status and headers of nginx's answer over TLS; status 0 while nothing answers."""
        context = ssl.create_default_context(cafile=str(self.place / "tls" / "fullchain.pem"))
        context.check_hostname = False
        try:
            with urllib.request.urlopen(f"https://127.0.0.1:{self.https}{path}", timeout=10, context=context) as answer:
                return answer.status, dict(answer.headers)
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers)
        except OSError:
            return 0, {}

    def inside(self, *command: str) -> str:
        return self.run("podman", "exec", "compose_bidkeeper_1", *command)


@pytest.fixture(scope="module")
def containers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containers]:
    need("podman", "podman-compose", "runc", "debootstrap")
    need_root("make a Debian to build on")
    made = Containers(tmp_path_factory.mktemp("containers"))
    root = debian(tmp_path_factory.mktemp("debian"))
    (root / "usr/bin/python").symlink_to("python3")
    made.build(root)
    shutil.rmtree(root)
    try:
        made.compose("up", "-d", "--no-build")
        yield made
    finally:
        made.compose("down", "--volumes")
        made.run("podman", "rmi", "--all", "--force")


def is_ready(containers: Containers) -> Callable[[], bool]:
    return lambda: containers.get("/readyz")[0] == 200


@pytest.mark.faults
def test_it_is_ready_behind_tls(containers: Containers) -> None:
    until(is_ready(containers), "ready", 120)
    status, headers = containers.get("/api/tasks")
    assert status == 401 and headers["Strict-Transport-Security"]
    assert containers.get("/metrics")[0] == 403


@pytest.mark.faults
def test_it_is_one_user_that_writes_to_its_volume_only(containers: Containers) -> None:
    until(is_ready(containers), "ready", 120)
    assert containers.inside("id", "-u").strip() == "10001"
    with pytest.raises(AssertionError, match="Read-only file system"):
        containers.inside("touch", "/opt/bidkeeper/x")
    assert "bidkeeper.db" in containers.inside("ls", "/data")


@pytest.mark.faults
def test_a_killed_program_comes_back_and_data_outlive_the_containers(containers: Containers) -> None:
    until(is_ready(containers), "ready", 120)
    address = "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu"
    containers.inside("/opt/bidkeeper/venv/bin/bidkeeper", "whitelist", "add", address)
    containers.inside("pkill", "-9", "-f", "cli.main signer")
    until(is_ready(containers), "ready after a kill", 120)
    containers.compose("down")
    containers.compose("up", "-d", "--no-build")
    until(is_ready(containers), "ready again", 120)
    assert address in containers.inside("/opt/bidkeeper/venv/bin/bidkeeper", "whitelist", "list")
