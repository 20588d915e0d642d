"""The doctor on an installation that does not run: its findings and their remedies."""

from __future__ import annotations

import json
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from cli.doctor import data_check, machine_check, program_check, settings_check
from cli.doctor.check import ok
from cli.doctor.data_check import file_system, verify_tail
from cli.main import main
from core import version
from core.settings import Settings, load
from models import schema
from models.database import base
from tests.cli.commands import in_this_process
from tests.cli.conftest import Examine
from wallet.signer.audit import AuditLog


@pytest.fixture
def migrated(environment: dict[str, str]) -> Path:
    """The path of a database of this version."""
    path = Path(environment["BIDKEEPER_DATA_DIR"]) / "bidkeeper.db"
    base.connect(f"sqlite:///{path}")
    schema.migrate()
    base.close()
    return path


def test_an_installation_that_is_down_has_no_fault(examine: Examine, migrated: Path) -> None:
    found = examine("machine", "settings", "data", "programs", "venues")
    assert {name for name, check in found.items() if check.status == "FAIL"} == set()
    assert found["programs"].line() == "warn programs: Bidkeeper is not running, so none was checked -> bidkeeper up"
    assert found["database"].status == "ok"
    assert "; last migrated by one that did not record itself, on 20" in found["database"].text
    assert found["libsecp256k1"].status == found["bip322"].status == found["sqlite"].status == "ok"


def test_empty_whitelist_of_a_practice_installation_names_the_demo(
    examine: Examine, environment: dict[str, str], migrated: Path
) -> None:
    environment["BIDKEEPER_WHITELIST"] = ""
    assert examine("data")["whitelist"].remedy.endswith("unless this is bidkeeper demo, which admits any")


@pytest.mark.slow
def test_it_tries_whether_a_process_can_give_up_the_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert machine_check._network() == ok("signer and workers have no network access (seccomp)")
    stub = tmp_path / "python"
    stub.write_text("#!/bin/sh\necho seccomp: Function not implemented\n")
    stub.chmod(0o700)
    for python, reason in ((str(stub), "seccomp: Function not implemented"), ("/nonexistent", "the check failed")):
        monkeypatch.setattr(machine_check, "PYTHON", (python,))
        found = machine_check._network()
        assert found.status == "warn" and reason in found.text


def test_the_version_comes_first(environment: dict[str, str]) -> None:
    _, lines, _ = in_this_process(environment, "doctor", "--only", "settings")
    assert lines.splitlines()[0] == f"ok   bidkeeper: {version.running()}"
    _, text, _ = in_this_process(environment, "doctor", "--only", "settings", "--json")
    told = json.loads(text)
    assert list(told) == ["version", "commit", "ok", "checks"]
    assert (told["version"], told["commit"]) == (version.VERSION, version.running().commit or None)


def test_what_is_pasted_into_an_issue_holds_no_secret(environment: dict[str, str], tmp_path: Path) -> None:
    secrets = {
        "BIDKEEPER_DATABASE_URL": "postgresql://bot:hunter2@127.0.0.1:1/bk",
        "BIDKEEPER_MARKET": "satflow",
        "BIDKEEPER_SATFLOW_URL": "http://127.0.0.1:1/v1",
        "BIDKEEPER_SATFLOW_API_KEY": "satflowkeysatflowkey",
        "BIDKEEPER_UNISAT_URL": "http://127.0.0.1:1",
        "BIDKEEPER_UNISAT_API_KEY": "unisatkeyunisatkey",
    }
    code, text, _ = in_this_process(environment | secrets, "doctor", "--json")
    assert code == 1 and len(json.loads(text)["checks"]) > 10
    assert not [secret for secret in ("hunter2", "satflowkey", "unisatkey") if secret in text]


def test_looking_leaves_nothing_behind(examine: Examine, migrated: Path) -> None:
    before = sorted(path.name for path in migrated.parent.iterdir())
    examine("data", "programs", "venues")
    assert sorted(path.name for path in migrated.parent.iterdir()) == before


@pytest.mark.parametrize(
    ("mode", "status", "remedy"),
    [(0o700, "ok", ""), (0o750, "warn", "chmod 700"), (0o755, "FAIL", "chmod o-rwx"), (0o770, "FAIL", "chmod g-w")],
)
def test_a_data_directory_that_others_may_enter(
    examine: Examine, environment: dict[str, str], mode: int, status: str, remedy: str
) -> None:
    directory = Path(environment["BIDKEEPER_DATA_DIR"])
    directory.chmod(mode)
    check = examine("data")["data directory"]
    assert check.status == status
    assert check.remedy == (f"{remedy} {directory}" if remedy else "")


def test_a_keystore_that_others_may_read(examine: Examine, environment: dict[str, str]) -> None:
    signer = Path(environment["BIDKEEPER_DATA_DIR"]) / "signer"
    signer.mkdir(mode=0o700)
    (signer / "keystore.json").touch(0o644)
    check = examine("data")["signer's files"]
    assert (check.status, check.remedy) == ("FAIL", f"chmod go-rwx {signer}/keystore.json")


@pytest.mark.parametrize(
    ("forms", "said"),
    [
        ([], None),
        (
            [{"venue": "satflow", "kind": "plain"}, {"venue": "unisat", "kind": "plain"}],
            "satflow plain, unisat plain",
        ),
    ],
)
def test_forms_that_a_former_version_had_confirmed(
    examine: Examine, environment: dict[str, str], forms: list[dict[str, str]], said: str | None
) -> None:
    signer = Path(environment["BIDKEEPER_DATA_DIR"]) / "signer"
    signer.mkdir(mode=0o700)
    assert "learnt forms" not in examine("data")
    (signer / "learnt.json").write_text(json.dumps({"forms": forms, "hmac": ""}))
    check = examine("data").get("learnt forms")
    if said is None:
        assert check is None
    else:
        assert check and check.status == "warn"
        more = "a draft of another form is no longer refused, and is signed when every rule holds"
        assert check.text == f"{said}: {more}"
        assert f"delete {signer}/learnt.json" in check.remedy


def test_forms_that_only_the_signers_user_can_see(
    examine: Examine, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(directory: Path) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(data_check, "former_forms", closed)
    check = examine("data")["learnt forms"]
    assert check.status == "ok" and "the signer's log says so at its start" in check.text


def test_what_drafts_are_signed_by_at_the_practice_market(environment: dict[str, str]) -> None:
    told = {check.name.removeprefix("live simulator"): check.text for check in settings_check.drafts(load(environment))}
    for meant in (" plain listings", "-unisat plain listings", " withdrawals", "-ordnet bids"):
        assert told[meant] == "signed after the signer has checked what each draft moves"
    assert told[" secure listings"].startswith("not signed: ")
    assert told["-ordnet listings"].endswith(
        "what each draft moves: transfer, sale and recovery, by an escrow that your own key opens"
    )


def test_the_signers_user_at_the_gateway(examine: Examine, environment: dict[str, str]) -> None:
    environment |= {"BIDKEEPER_SIGNER_CLIENTS": "1", "BIDKEEPER_FACTS_CLIENTS": "1,2"}
    environment["BIDKEEPER_GATEWAY_CLIENTS"] = "1"
    assert examine("settings")["settings"].status == "ok"
    environment["BIDKEEPER_GATEWAY_CLIENTS"] = "1,2"
    check = examine("settings")["settings"]
    assert check.line() == (
        "warn settings: BIDKEEPER_GATEWAY_CLIENTS names the signer's own user, whom the gateway does not answer"
        " -> remove that user from BIDKEEPER_GATEWAY_CLIENTS"
    )


def test_a_database_that_is_behind_on_migrations(examine: Examine, migrated: Path) -> None:
    *_, before, last = sorted(path.stem for path in schema._DIRECTORY.glob("0*.py"))
    migrated.unlink()
    base.connect(f"sqlite:///{migrated}")
    schema._runner().up(before)
    base.close()
    assert examine("data")["database"].line() == f"FAIL database: migrations missing: {last} -> bidkeeper migrate"


def test_a_database_of_another_version(examine: Examine, migrated: Path) -> None:
    with closing(sqlite3.connect(migrated)) as connection, connection:
        connection.execute("INSERT INTO schema_migration (name, applied) VALUES ('9999_more', '2026-01-01')")
    check = examine("data")["database"]
    assert check.status == "FAIL" and "made by a newer version of Bidkeeper (migrations 9999_more)" in check.text
    assert str(version.running()) in check.text and check.remedy.startswith("run that version or a newer one")


def test_a_database_with_other_tables(examine: Examine, migrated: Path) -> None:
    with closing(sqlite3.connect(migrated)) as connection, connection:
        connection.execute("DROP INDEX orders_fills")
    check = examine("data")["database"]
    assert check.status == "FAIL" and "(other tables: orders_fills)" in check.text
    assert check.remedy.startswith("run that version, or put the whole data directory aside")


def test_a_file_system_over_the_network(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 254:0 / / rw shared:1 - ext4 /dev/vda rw\n"
        "40 22 0:45 / /srv/my\\040data rw - nfs4 host:/x rw\n"
        "41 22 0:46 / /srv/my rw - tmpfs tmpfs rw\n"
    )
    assert file_system(Path("/srv/my data/bidkeeper"), mounts) == "nfs4"
    assert file_system(Path("/srv/other"), mounts) == "ext4"


def test_the_tail_of_the_audit_log(examine: Examine, environment: dict[str, str]) -> None:
    path = Path(environment["BIDKEEPER_DATA_DIR"]) / "signer" / "audit.jsonl"
    path.parent.mkdir(mode=0o700)
    with closing(AuditLog(path)) as audit:
        for number in range(5):
            audit.append(number, {"op": "bid", "sats": number})
    assert examine("data")["audit log"].line() == "ok   audit log: the hash chain of the last 5 lines is intact"
    with path.open("ab") as file:
        file.write(b'{"number": 6, "to')  # being written
    assert verify_tail(path) == 5
    path.write_bytes(path.read_bytes().replace(b'"sats":2', b'"sats":9'))
    check = examine("data")["audit log"]
    assert (check.status, check.text) == ("FAIL", "broken: line 4 does not follow the one before it")


@pytest.mark.slow
def test_a_port_that_another_program_has(examine: Examine, environment: dict[str, str]) -> None:
    port = int(environment["BIDKEEPER_PORT"])
    with socket.create_server(("127.0.0.1", port)):
        check = examine("programs")[f"port {port}"]
    assert check.status == "FAIL"
    assert check.remedy == "stop that program, or set BIDKEEPER_PORT"


def test_a_key_file_that_others_may_read(examine: Examine, environment: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "satflow.key"
    file.write_text("secret")
    environment["BIDKEEPER_SATFLOW_API_KEY_FILE"] = str(file)
    file.chmod(0o644)
    assert examine("settings")["settings"].remedy == f"chmod 600 {file}"
    file.chmod(0o600)
    assert examine("settings")["settings"].status == "ok"


def test_a_file_of_settings_with_a_key_that_others_may_read(
    examine: Examine, environment: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "bidkeeper.toml"
    environment["BIDKEEPER_CONFIG"] = str(file)
    file.write_text('unisat_api_key_file = "/dev/null"\n')
    file.chmod(0o644)
    assert examine("settings")["settings"].status == "ok"
    file.write_text('unisat_api_key = "secret"\n')
    assert examine("settings")["settings"].remedy == f"chmod 600 {file}"


def test_a_key_file_that_is_not_there(examine: Examine, environment: dict[str, str], tmp_path: Path) -> None:
    environment["BIDKEEPER_SATFLOW_API_KEY_FILE"] = str(tmp_path / "none")
    check = examine("settings")["settings"]
    assert check.status == "FAIL"
    assert check.remedy == "put the key into that file"


def test_a_socket_path_that_only_supervisord_finds_too_long(examine: Examine, environment: dict[str, str]) -> None:
    room = 107 - len("/run/supervisor.sock")  # without the pid that it is bound under
    environment["BIDKEEPER_DATA_DIR"] = "/tmp/" + "x" * (room - len("/tmp/"))
    check = examine("settings")["sockets"]
    assert check.status == "FAIL"
    assert "supervisor.sock" in check.text


def test_all_faults_of_the_settings_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BIDKEEPER_PORT", "none")
    monkeypatch.setenv("BIDKEEPER_MARKET", "bazaar")
    assert main(["doctor", "--only", "settings"]) == 1
    _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["FAIL", "settings:", "BIDKEEPER_PORT"],
        ["FAIL", "settings:", "BIDKEEPER_MARKET"],
    ]
    assert all(line.endswith("-> see docs/settings.md") for line in lines)


@pytest.mark.slow
def test_the_command_as_an_operator_calls_it(environment: dict[str, str], migrated: Path) -> None:
    command = [sys.executable, "-m", "cli.main", "doctor", "--only", "data"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert all(line.startswith(("ok ", "warn")) for line in done.stdout.splitlines())
    assert done.stderr == ""
    migrated.parent.chmod(0o777)
    assert subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 1


def test_a_play_wallet_with_a_real_market_is_a_fault(examine: Examine, environment: dict[str, str]) -> None:
    environment |= {"BIDKEEPER_MARKET": "ordnet", "BIDKEEPER_ORDNET_URL": "https://ord.net/api/v1"}
    environment["BIDKEEPER_PLAY_WALLET"] = "true"
    check = examine("settings")["settings"]
    assert check.status == "FAIL"
    assert "BIDKEEPER_PLAY_WALLET" in check.text


def test_facts_that_do_not_answer_this_user_are_named(tmp_path: Path) -> None:
    """As in an installation with three users that was made before the manager asked facts."""
    settings = Settings(gateway_run_dir=tmp_path)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(settings.facts_socket))
        door.listen()

        def turn_away() -> None:
            for _ in range(2):
                door.accept()[0].close()

        caller = threading.Thread(target=turn_away)
        caller.start()
        found = program_check._facts(settings)
        caller.join()
    assert found.status == "warn" and "BIDKEEPER_FACTS_CLIENTS" in found.remedy
