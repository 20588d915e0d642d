"""The transactions of the play chain: real ones that any library reads, though never mined."""

from __future__ import annotations

import hashlib

from embit.script import Script, Witness, address_to_scriptpubkey
from embit.transaction import Transaction, TransactionInput, TransactionOutput

from wallet import address

REPLACEABLE = 0xFFFFFFFD
_NO_OUTPUT = 0xFFFFFFFF


def script_of(owner: str) -> Script:
    """Returns the script that pays an address; a scripted owner with a made-up name gets one of its own."""
    try:
        parsed = address.parse(owner)
    except address.AddressError:
        return Script(b"\x00\x20" + hashlib.sha256(f"play owner {owner}".encode()).digest())
    return address_to_scriptpubkey(parsed.text)


def address_of(script: Script) -> str | None:
    """Returns the mainnet address of a script, None when it has none."""
    return str(script.address()) if script.script_type() else None


def minted(tag: str, outputs: list[TransactionOutput]) -> Transaction:
    """Makes a coinbase that pays `outputs` out of nothing; equal tags and outputs make equal transactions."""
    mark = hashlib.sha256(tag.encode()).digest()
    source = TransactionInput(bytes(32), _NO_OUTPUT, Script(bytes([len(mark)]) + mark))
    return Transaction(2, [source], outputs)


def moved(outpoint: str, output: TransactionOutput) -> Transaction:
    """Spends `outpoint` to `output`. The owner's signature is zeros: this chain does not have the key."""
    return spent_together([outpoint], [output])


def spent_together(outpoints: list[str], outputs: list[TransactionOutput]) -> Transaction:
    """Spends several outputs at once, with zeros for the owners' signatures as in `moved`."""
    sources = [spend(each) for each in outpoints]
    for source in sources:
        source.witness = Witness([bytes(64)])
    return Transaction(2, sources, outputs)


def spend(outpoint: str, sequence: int = REPLACEABLE) -> TransactionInput:
    """Returns the unsigned input that spends `txid:vout`."""
    txid, vout = outpoint.split(":")
    return TransactionInput(bytes.fromhex(txid), int(vout), sequence=sequence)


def outpoint_of(source: TransactionInput) -> str:
    return f"{source.txid.hex()}:{source.vout}"


def parse(raw: str) -> Transaction:
    """Reads the transaction of hex digits that this chain wrote."""
    return Transaction.parse(bytes.fromhex(raw))
