"""`bidkeeper venue probe|learn|learnt`: a venue's raw answers, and the confirmed forms of its drafts."""

from __future__ import annotations

import argparse

from cli import learn
from cli.doctor import probe
from core.settings import Settings


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds probe NAME ... | learn NAME ... | learnt list|show|forget ..."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    probe.add_arguments(
        actions.add_parser("probe", help="ask a marketplace the adapters' questions and save its raw answers")
    )
    learn.add_arguments(actions.add_parser("learn", help="ask a marketplace for drafts, and confirm their form"))
    learn.add_learnt_arguments(actions.add_parser("learnt", help="list, show or delete the confirmed forms"))


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Runs one action, as its module says."""
    if options.action == "probe":
        return probe.run(settings, options)
    if options.action == "learn":
        return learn.run(settings, options)
    return learn.learnt(settings, options)
