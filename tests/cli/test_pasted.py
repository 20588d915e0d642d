"""Arguments and settings read pasted texts as the interface does."""

from __future__ import annotations

import argparse
import importlib

import pytest

from cli import arguments
from cli.main import VERBS
from core.errors import SettingsError
from core.settings import load
from wallet.signer.allowed import with_normal_addresses

ADDRESS = "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu"
INSCRIPTION = "6fb976ab49dcec017f1e201e84395983204ae1a7c2abf7ced0a85d692e442799i0"


def parsed(verb: str, *words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    importlib.import_module(VERBS[verb][0]).add_arguments(verb, parser)
    return parser.parse_args(words)


@pytest.mark.parametrize("text", [f" {ADDRESS}\n", f"bitcoin:{ADDRESS}?label=x", ADDRESS.upper(), f"\ufeff{ADDRESS}"])
def test_every_command_reads_every_spelling_of_an_address(text: str) -> None:
    assert parsed("whitelist", "add", text).address == ADDRESS
    assert parsed("plan", "set", text, "beta").address == ADDRESS
    assert parsed("wallet", text).address == ADDRESS
    assert parsed("keys", "import", "--user", text).user == ADDRESS


def test_commands_read_ids_slugs_and_tickers() -> None:
    given = parsed("judge", ADDRESS, f"https://ordinals.com/inscription/{INSCRIPTION}", "100000")
    assert given.inscription == INSCRIPTION
    assert arguments.collection("https://x.io/collection/Cats") == "cats"
    assert arguments.ticker("example.rune") == "EXAMPLE\u2022RUNE"


def test_a_refused_argument_says_what_to_paste(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("whitelist", "add", f"bitcoin:{ADDRESS}?req-x=1")
    assert "paste the address alone" in capsys.readouterr().err


def test_settings_read_every_spelling_of_an_address(environment: dict[str, str]) -> None:
    listed = {"BIDKEEPER_WHITELIST": f"bitcoin:{ADDRESS.upper()}", "BIDKEEPER_ADMINS": f"\u200b{ADDRESS}"}
    found = with_normal_addresses(load(environment | listed))
    assert found.whitelist == found.admins == frozenset({ADDRESS})
    testnet = {"BIDKEEPER_ADMINS": "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx"}
    with pytest.raises(SettingsError, match="a testnet address; a mainnet address is needed"):
        with_normal_addresses(load(environment | testnet))
