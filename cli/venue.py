"""`bidkeeper venue probe|check`: a venue's raw answers, saved for a report and held against the parsers."""

from __future__ import annotations

import argparse

from cli.evidence import check, probe
from core.settings import Settings


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds probe NAME ... | check FILE."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    probe.add_arguments(
        actions.add_parser("probe", help="ask a marketplace the adapters' questions and save its answers for a report")
    )
    check.add_arguments(
        actions.add_parser("check", help="hold a saved file of venue probe against the parsers; connects nowhere")
    )


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Runs one action, as its module says."""
    return {"probe": probe.run, "check": check.run}[options.action](settings, options)
