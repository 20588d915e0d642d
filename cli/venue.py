"""`bidkeeper venue probe|check|learn|learnt`: a venue's raw answers, and the confirmed forms of its drafts."""

from __future__ import annotations

import argparse

from cli import learn
from cli.evidence import check, probe
from core.settings import Settings


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds probe NAME ... | check FILE | learn NAME ... | learnt list|show|forget ..."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    probe.add_arguments(
        actions.add_parser("probe", help="ask a marketplace the adapters' questions and save its answers for a report")
    )
    check.add_arguments(
        actions.add_parser("check", help="hold a saved file of venue probe against the parsers; connects nowhere")
    )
    learn.add_arguments(actions.add_parser("learn", help="ask a marketplace for drafts, and confirm their form"))
    learn.add_learnt_arguments(actions.add_parser("learnt", help="list, show or delete the confirmed forms"))


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Runs one action, as its module says."""
    actions = {"probe": probe.run, "check": check.run, "learn": learn.run}
    return actions.get(options.action, learn.learnt)(settings, options)
