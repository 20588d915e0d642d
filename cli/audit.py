"""`bidkeeper audit verify`: checks that the signer's audit log is complete and in order, without loading the signer."""

from __future__ import annotations

import argparse

from core.settings import Settings
from wallet.signer.audit import AuditError, verify_chain


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds verify."""
    parser.add_argument("action", choices=["verify"], help="check the hash chain from its first line")


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Prints the number of lines, or the first wrong line."""
    try:
        print(f"{verify_chain(settings.signer_files / 'audit.jsonl')} lines, the hash chain is intact")
    except FileNotFoundError:
        print("nothing was signed yet")
    except AuditError as error:
        print(f"the hash chain is broken: {error}")
        return 1
    return 0
