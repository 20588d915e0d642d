"""`bidkeeper keys`: manages the keystore for real money.

Secrets are read at a prompt, never from arguments or the environment, because other users could see them there.
"""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from contextlib import closing
from pathlib import Path

from cli.arguments import address
from core.call import call
from core.errors import BidkeeperError, PeerError, PeerRefused
from core.fields import NotText, decoded
from core.settings import Settings
from wallet.keystore import keys, keystore
from wallet.keystore.keys import Contents, Imported, Keystore, is_play, read_file
from wallet.protocol import Unlock
from wallet.signer.audit import AuditLog, line_of, require_numbers, verify_chain
from wallet.signer.signer_process import AUDIT_LOG, KEYSTORE, now_ms


def secret(question: str) -> str:
    """Reads one line without its line end and byte order mark. Raises BidkeeperError at the end of the input."""
    try:
        if sys.stdin.isatty():
            return getpass.getpass(f"{question}: ")
        # A locale without UTF-8 keeps undecodable bytes as surrogates (surrogateescape).
        line = decoded(sys.stdin.readline().encode("utf-8", "surrogateescape"))
    except EOFError:
        line = ""
    except (NotText, UnicodeError):
        raise BidkeeperError(f"the input is not text in UTF-8: {question}") from None
    if not line:
        raise BidkeeperError(f"no input for: {question}")
    return line.rstrip("\r\n")


def twice(question: str) -> str:
    """Asks for the same line twice. Raises BidkeeperError if the two differ."""
    first = secret(question)
    if secret(f"{question}, again") != first:
        raise BidkeeperError("the two entries differ")
    return first


PASSPHRASE = "Passphrase of the keystore"
# scrypt takes half a second, and reading a long audit log takes longer.
_UNLOCK_S = 120.0
_SHOWN_ONCE = """
Only these words restore the keys if the file or the passphrase is lost. They are shown once: write them on paper,
and keep the paper as safe as money.
"""


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds init [--words] [--user ADDRESS ...] | import --user ADDRESS | list | backup FILE | ..."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    init = actions.add_parser("init", help="create a keystore for real money; its 24 words are shown once")
    init.add_argument("--words", action="store_true", help="restore an earlier keystore from its words; asks for them")
    text = "with --words: a user who had keys there; repeat in the order of `keys list`"
    init.add_argument("--user", type=address, metavar="ADDRESS", action="append", default=[], help=text)
    imported = actions.add_parser("import", help="use a wallet's own keys for a user; asks for them")
    text = "the address that the user signs in with"
    imported.add_argument("--user", type=address, metavar="ADDRESS", required=True, help=text)
    imported.add_argument("--replace", action="store_true", help="replace keys that were imported before")
    actions.add_parser("list", help="list users with their numbers and addresses")
    backup = actions.add_parser("backup", help="copy the keystore, encrypted as it is")
    backup.add_argument("file", type=Path, help="a new file")
    actions.add_parser("change-passphrase", help="seal the keystore under another passphrase")
    actions.add_parser("unlock", help="give the running signer the passphrase")


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Runs one action. Raises BidkeeperError with the reason if it fails."""
    keystore.harden()
    path = settings.signer_files / KEYSTORE
    try:
        match options.action:
            case "init":
                _init(path, options)
            case "import":
                _import(path, options.user, may_replace=options.replace)
            case "list":
                _list(path)
            case "backup":
                keystore.backup(path, options.file)
                print(f"{options.file} opens with the current passphrase; to restore it, copy it to {path}")
            case "change-passphrase":
                keystore.require_sealed(path)
                with keystore.locked(path):
                    keystore.change_passphrase(path, secret("Present passphrase"), twice("New passphrase"))
                print("changed. Earlier backups still open with the old passphrase: make a new backup and destroy them")
            case _:
                # The operators' socket, where it is writable, counts wrong passphrases separately.
                is_here = settings.signer_host is None and os.access(settings.operators_socket, os.W_OK)
                _unlock(settings.operators_socket if is_here else settings.signer_socket)
    except OSError as error:
        raise BidkeeperError(f"{error.filename or path}: {error.strerror}") from error
    return 0


def _init(path: Path, options: argparse.Namespace) -> None:
    keystore.require_absent(path)
    if options.user and not options.words:
        raise BidkeeperError("--user goes with --words: a new keystore has no users yet")
    if len(set(options.user)) != len(options.user):
        raise BidkeeperError("a user is named twice")
    words = secret("Words of the earlier keystore") if options.words else keys.words_of(os.urandom(32))
    seed = keys.seed_of(words)
    keystore.create(path, twice("New passphrase"), Contents(seed, tuple(options.user)))
    print(f"made {path}")
    if not options.words:
        print(_SHOWN_ONCE)
        for at, word in enumerate(words.split(), 1):
            print(f"{at:>3} {word}")
    print(
        "\nNext: bidkeeper keys unlock, while the service runs; bidkeeper keys backup FILE once users have signed in."
    )


def _import(path: Path, user: str, *, may_replace: bool) -> None:
    keystore.require_sealed(path)
    log = path.with_name(AUDIT_LOG)
    with keystore.locked(path), closing(AuditLog(log)) as audit:
        opened = keystore.unlock(path, secret(PASSPHRASE))
        if opened.is_imported(user) and not may_replace:
            raise BidkeeperError(f"{user} has imported keys already: --replace puts others in their place")
        verify_chain(log)
        require_numbers(log, opened.users if user in opened.users else (*opened.users, user))
        public = opened.put_imported(user, _asked_keys()).public
        audit.append(now_ms(), line_of(opened.users.index(user), user, public))
    print(f"{user} now has\npayment {public.payment}\nvault   {public.vault}")
    print("Compare them with the wallet. If they are not its addresses, import again with --replace.")


def _asked_keys() -> Imported:
    given = secret("BIP-39 words, or the WIF of the payment address (empty: keep the present one)")
    if len(given.split()) > 1:
        return keys.from_words(given, secret("BIP-39 passphrase (empty: there is none)"))
    vault = secret("WIF of the vault, a taproot address (empty: keep the present one)")
    if not given.strip() and not vault.strip():
        raise BidkeeperError("no key was given")
    payment, taproot = (keys.from_wif(wif) if wif.strip() else None for wif in (given, vault))
    return Imported(payment, taproot)


def _list(path: Path) -> None:
    if is_play(read_file(path)):
        print("PLAY MONEY: never send bitcoin to these addresses")
        opened = Keystore.open(path)
    else:
        opened = keystore.unlock(path, secret(PASSPHRASE))
    for n, user in enumerate(opened.users):
        public = opened.secrets_of(user).public
        origin = " (imported)" if opened.is_imported(user) else ""
        print(f"{n} {user}\n  payment {public.payment}\n  vault   {public.vault}{origin}")
    if not opened.users:
        print("no user has keys yet: they get them when they sign in")


def _unlock(socket: Path) -> None:
    passphrase = secret(PASSPHRASE)
    try:
        call(socket, "signer", Unlock(passphrase), timeout=_UNLOCK_S)
    except PeerRefused as refused:
        raise BidkeeperError(refused.message) from None
    except PeerError as error:
        raise BidkeeperError(str(error)) from error
    print("the signer is ready")
