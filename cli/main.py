"""`bidkeeper VERB ...`: reads the settings, then runs the verb."""

from __future__ import annotations

import argparse
import importlib
import io
import logging
import sys

from core import logs
from core.errors import BidkeeperError, PeerUnavailable, SettingsError
from core.settings import SECRETS, load
from wallet.address import with_normal_addresses

log = logging.getLogger(__name__)

# verb → (its module, one line of help); only the chosen verb's module is imported
VERBS = {
    "up": ("cli.up", "start everything and stay in the foreground"),
    "demo": ("cli.demo", "like up, with play money and a demo user whose tasks trade"),
    "server": ("cli.programs", "run one program: the HTTP API and the page"),
    "manager": ("cli.programs", "run one program: starts and watches the tasks' workers"),
    "gateway": ("cli.programs", "run one program: all calls to the marketplaces"),
    "facts": ("cli.programs", "run one program: chain data for the signer (outputs, inscriptions)"),
    "signer": ("cli.programs", "run one program: keeps the keys, checks and signs"),
    "relay": ("cli.relay", "run one program: an nginx that connects programs on several hosts"),
    "hooks": ("cli.programs", "run one program: sends notifications to webhooks, chats and mail"),
    "simulator": ("cli.programs", "run one program: the practice marketplace"),
    "ray": ("cli.on_ray", "keep the managers of several machines running on a Ray cluster"),
    "migrate": ("cli.database", "update the database to this version's schema"),
    "database": ("cli.database", "copy the database into an empty one (SQLite or PostgreSQL)"),
    "whitelist": ("cli.users", "add, remove or list the addresses that may sign in"),
    "plan": ("cli.users", "give a user a plan, or list the plans in use"),
    "sign-in": ("cli.sign_in", "sign in without a browser; prints a token"),
    "wallet": ("cli.wallet", "show a user's addresses, their purposes and balances"),
    "judge": ("cli.wallet", "check a listing that a marketplace drafts by the signer's rules; signs nothing"),
    "replay": ("cli.replay", "try a config on a task's recorded cycles, or on recorded order books"),
    "keys": ("cli.keys", "manage keys for real money: create, import, list, back up, unlock"),
    "audit": ("cli.audit", "verify the signer's audit log"),
    "reconcile": ("cli.reconcile", "show bids and purchases that no order knows, as after a restored backup"),
    "doctor": ("cli.doctor.doctor", "check everything that Bidkeeper needs, and print a remedy for each fault"),
    "venue": ("cli.venue", "save a marketplace's answers, or check such a file"),
}

# The other programs do not read the secrets, so they cannot leak them; if each has its own user, they are unable to.
SECRETS_READ = dict.fromkeys(("up", "demo", "gateway", "venue probe"), SECRETS) | {"facts": ("unisat_api_key",)}


class _Version(argparse.Action):
    """`--version`: looks up the commit only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *given: object) -> None:
        print(f"bidkeeper {importlib.import_module('core.version').running()}")
        parser.exit()


def main(arguments: list[str] | None = None) -> int:
    """Runs one verb. Returns 0, 1 if it failed, 2 if settings or arguments are wrong."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a character that the terminal cannot show must not end the program
            stream.reconfigure(errors="backslashreplace")
    parser = argparse.ArgumentParser(
        prog="bidkeeper", description="Keeps bids and listings of Ordinals and Runes alive."
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and its commit, and end")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    given = sys.argv[1:] if arguments is None else arguments
    for verb, (module, help_line) in VERBS.items():
        added = verbs.add_parser(verb, help=help_line, description=help_line)
        if verb in given[:1]:
            importlib.import_module(module).add_arguments(verb, added)
    options = parser.parse_args(given)
    try:
        if options.verb == "doctor":  # the doctor explains wrong settings itself
            return int(importlib.import_module("cli.doctor.doctor").run_alone(options))
        verb = f"venue {options.action}" if options.verb == "venue" else str(options.verb)
        settings = with_normal_addresses(load(secrets=SECRETS_READ.get(verb, ())))
        logs.set_up(options.verb, settings.log_level, settings.log_format)
        return int(importlib.import_module(VERBS[options.verb][0]).run(settings, options))
    except SettingsError as error:
        return _failed(options, error.problems, 2)
    except BidkeeperError as error:
        return _failed(options, [f"{error}{_remedy(error)}"], 1)
    except BrokenPipeError:
        return 1
    except OSError as error:
        if error.filename is None:
            raise
        return _failed(options, [f"{error.filename}: {error.strerror}"], 1)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if _is_program(options) or not _is_of_database(error):
            raise  # so that a program's log gets the traceback
        text = f"the database cannot be used: {error}; bidkeeper doctor --only data says what to do"
        return _failed(options, [text], 1)


def _remedy(error: BidkeeperError) -> str:
    """Returns the remedy to append to an error of the database or of a program that is down; "" for others."""
    database_errors = sys.modules.get("models.database.damage")
    if database_errors is not None and isinstance(error, database_errors.DatabaseAway):
        return "; bidkeeper doctor --only data says what to do"
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, PeerUnavailable):
        cause = cause.__cause__
    is_down = cause is not None and isinstance(cause.__cause__, FileNotFoundError | ConnectionRefusedError)
    return "; start the service with bidkeeper up" if is_down and "while it runs" not in str(error) else ""


def _is_of_database(error: Exception) -> bool:
    """Returns True if the database itself failed (damaged, locked, away), False for a wrong SQL statement.

    Programs without a database do not load the library, so it is not imported here.
    """
    peewee = sys.modules.get("peewee")
    return peewee is not None and type(error) in (peewee.DatabaseError, peewee.OperationalError)


def _is_program(options: argparse.Namespace) -> bool:
    return VERBS[options.verb][0] in ("cli.programs", "cli.relay")


def _failed(options: argparse.Namespace, problems: list[str], code: int) -> int:
    """Prints why the verb failed to stderr; a program whose log is JSON logs it instead."""
    for problem in problems:
        if _is_program(options) and logs.writes_json():
            log.error("%s", problem)
        else:
            print(f"bidkeeper: {problem}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
