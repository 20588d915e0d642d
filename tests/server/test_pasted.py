"""Pasted texts over HTTP: any spelling is taken, the plain form is stored and answered, and the rest is a plain 400."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import quote

import pytest

from core.hook_receivers import Receivers
from markets.base import Item
from models.hooks.table import Hook
from models.users import Whitelist
from tests.wallet import proofs
from tests.worlds.service import ADMIN, OWNER, START_MS, Service, new_user, token_of, with_settings
from wallet.keystore.keys import sign_message

INSCRIPTION = "6fb976ab49dcec017f1e201e84395983204ae1a7c2abf7ced0a85d692e442799i0"
SPELLED_ADDRESS = [
    f" {OWNER}\n",
    f"bitcoin:{OWNER}?amount=1",
    f"BITCOIN:{OWNER.upper()}",
    f"\ufeff{OWNER}",
    OWNER.upper(),
]


async def signed_in(service: Service, address: str, spelled: Any) -> Any:
    challenge = await service.api("POST", "/api/auth/challenge", {"address": address})
    assert challenge.status == 200, challenge.text
    signature = spelled(sign_message(proofs.OWNER, "p2wpkh", challenge.json["message"]))
    body = {"challengeId": challenge.json["challengeId"], "address": address, "signature": signature}
    return await service.api("POST", "/api/auth/verify", body | {"publicKey": " 0x02" + "AB" * 32 + "\n"})


@pytest.mark.parametrize("address", SPELLED_ADDRESS)
async def test_any_spelling_of_an_address_signs_its_owner_in(service: Service, address: str) -> None:
    answer = await signed_in(service, address, lambda signature: signature)
    assert (answer.status, answer.json.get("user", {}).get("address")) == (200, OWNER), answer.text


@pytest.mark.parametrize(
    "spelled",
    [
        lambda text: text + "\r\n",
        lambda text: text[:64] + "\n" + text[64:],
        lambda text: text.rstrip("="),
        lambda text: text.replace("+", "-").replace("/", "_"),
        lambda text: base64.b64decode(text).hex(),
        lambda text: "0x" + base64.b64decode(text).hex().upper(),
        lambda text: "\u200bsmp" + text,
    ],
    ids=["line end", "wrapped", "unpadded", "of URLs", "hex", "0x and capitals", "prefix"],
)
async def test_any_spelling_of_a_signature_signs_in_and_a_strangers_never(service: Service, spelled: Any) -> None:
    assert (await signed_in(service, OWNER, spelled)).status == 200

    challenge = await service.api("POST", "/api/auth/challenge", {"address": OWNER})
    forged = spelled(sign_message(proofs.STRANGER, "p2wpkh", challenge.json["message"]))
    body = {"challengeId": challenge.json["challengeId"], "address": OWNER, "signature": forged}
    answer = await service.api("POST", "/api/auth/verify", body)
    assert (answer.status, answer.json) == (401, refused("signature is not by this address"))


class refused(dict[str, str]):
    """The body of a 401 whose message says this."""

    def __init__(self, words: str) -> None:
        super().__init__(error="Invalid signature or expired challenge")
        self.words = words

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict) and other["error"] == self["error"] and self.words in other["message"]


async def test_a_401_says_what_failed_and_no_more(service: Service) -> None:
    challenge = await service.api("POST", "/api/auth/challenge", {"address": OWNER})
    good = {"challengeId": challenge.json["challengeId"], "address": OWNER, "signature": "AA=="}
    unreadable = await service.api("POST", "/api/auth/verify", good | {"signature": "no signature!"})
    full = await service.api("POST", "/api/auth/verify", good | {"signature": "fulAAAA"})
    unknown = await service.api("POST", "/api/auth/verify", good | {"challengeId": "unknown"})
    service.clock.now_ms += 300_000
    expired = await service.api("POST", "/api/auth/verify", good)

    assert unreadable.json == refused("signature is neither base64 nor hex: copy it again from the wallet")
    assert full.json == refused("signature is not of BIP-322's simple kind")
    assert expired.json == refused("challenge is unknown, used, expired or had 5 wrong proofs; ask for a new one")
    assert (expired.status, expired.text) == (unknown.status, unknown.text), "it tells that a challenge was there"


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx", "a testnet address; a mainnet address is needed"),
        (f"bitcoin:{OWNER}?req-x=1", "not an address: it is a payment request with a condition"),
        ("\u202e" + OWNER, "not an address: it has a control or invisible character"),
        (OWNER[:20] + OWNER[20:].upper(), "not an address: it mixes upper and lower case"),
        ("b" * 10_000, "not an address: it is longer than 2000 characters"),
    ],
)
async def test_a_refused_address_gets_words(service: Service, address: str, words: str) -> None:
    answer = await service.api("POST", "/api/auth/challenge", {"address": address})
    assert (answer.status, answer.json["error"]) == (400, "Invalid Bitcoin address format")
    assert answer.details[0].startswith(f"address: {words}")


@with_settings(whitelist=frozenset({f"bitcoin:{OWNER.upper()}"}), admins=frozenset({ADMIN}))
async def test_lists_of_addresses_read_every_spelling(service: Service) -> None:
    nested = proofs.nested_address(proofs.OWNER)
    admin = token_of(new_user(ADMIN))
    added = await service.api("POST", "/api/admin/whitelist", {"address": f"bitcoin:{nested}\n"}, token=admin)
    again = await service.api("POST", "/api/admin/whitelist", {"address": f"\u200b{nested} "}, token=admin)
    segwit = proofs.p2tr_address(proofs.OWNER)
    Whitelist.create(address=segwit, added_ms=START_MS)
    removed = await service.api("DELETE", f"/api/admin/whitelist/{segwit.upper()}", token=admin)
    found = await service.api("GET", f"/api/admin/users?address={OWNER.upper()}%0A", token=admin)

    assert (added.status, added.json["address"], again.status) == (201, nested, 409)
    assert (removed.status, removed.json["address"]) == (200, segwit)
    assert [user["address"] for user in found.json["users"]] == [OWNER]
    assert (await service.api("POST", "/api/auth/challenge", {"address": OWNER})).status == 200


@pytest.mark.parametrize(
    ("type_", "slug", "spellings"),
    [
        ("ordinals", "quiet-cats", [" Quiet-Cats\n", "https://x.io/collection/quiet-cats?a=1", "quiet-\u200bcats"]),
        (
            "rune",
            "EXAMPLE\u2022RUNE",
            ["example.rune", "Example\u00b7Rune\r\n", "EXAMPLE RUNE \U0001f415", "EXAMPLERUNE"],
        ),
    ],
)
async def test_a_slug_is_stored_in_its_plain_form_and_one_task_is_for_all_spellings(
    service: Service, type_: str, slug: str, spellings: list[str]
) -> None:
    made = await service.ask("POST", "/api/tasks", {"slug": spellings[0], "type": type_, "hardcapSats": 1000})
    assert (made.status, made.json["slug"], made.json["config"]["slug"]) == (201, slug, slug), made.text
    for each in [slug, *spellings]:
        again = await service.ask("POST", "/api/tasks", {"slug": each, "type": type_, "hardcapSats": 1000})
        assert (again.status, again.json["error"]) == (409, "Task already exists for this slug"), each
    preset = {"name": "mine", "config": {"slug": spellings[1], "type": type_, "hardcapSats": 1000}}
    kept = await service.ask("POST", "/api/presets", preset)
    assert kept.json["config"]["slug"] == slug


async def test_the_market_is_asked_by_the_plain_form(service: Service) -> None:
    await service.ask("GET", f"/api/tasks/floor?type=rune&slug={quote(' example.rune')}")
    cats = await service.ask("GET", f"/api/tasks/floor?slug={quote('https://x.io/collection/Goosinals/')}")
    book = await service.ask("GET", f"/api/market/book?slug={quote('a/b')}")

    assert cats.status == 200, cats.text
    assert [each["args"]["slugs"] for each in service.gateway.asked] == [["EXAMPLE\u2022RUNE"], ["goosinals"]]
    assert book.details[0].startswith("slug: is an address that does not end in /collection/")


async def test_an_inscription_is_stored_in_its_plain_form_and_listed_once(service: Service) -> None:
    spellings = [f" {INSCRIPTION.upper()}\n", f"https://ordinals.com/inscription/{INSCRIPTION}", INSCRIPTION]
    made = await service.ask("POST", "/api/autolist", {"inscriptionId": spellings[0]})
    assert (made.status, made.json["inscriptionId"]) == (201, INSCRIPTION)
    for each in spellings:
        again = await service.ask("POST", "/api/autolist", {"inscriptionId": each})
        assert (again.status, again.json["error"]) == (409, "Task already exists for this inscription"), each
        changed = await service.ask("PUT", f"/api/autolist/{made.json['id']}", {"inscriptionId": each})
        assert changed.status == 200, "it is no other inscription"
    service.gateway.answers["item"] = Item(INSCRIPTION, listed=False)
    found = [await service.ask("GET", f"/api/autolist/item/{quote(each, safe='')}") for each in spellings]
    assert [each.json.get("id") for each in found] == [INSCRIPTION] * 3


async def test_an_inscriptions_number_is_refused_with_the_form_of_an_id(service: Service) -> None:
    made = await service.ask("POST", "/api/autolist", {"inscriptionId": "#12345"})
    shown = await service.ask("GET", "/api/autolist/item/12345")
    sent = await service.ask("POST", "/api/wallet/withdraw", {"from": "vault", "inscriptionId": "12345"})

    words = "is an inscription's number, and its id is needed: an inscription's id has 64 hex digits, the letter i"
    assert made.status == sent.status == 400
    assert made.details[0].startswith(f"inscriptionId: {words}") and sent.details[0].startswith(
        f"inscriptionId: {words}"
    )
    assert (shown.status, shown.json["error"]) == (404, "Not found") and words in shown.json["message"]


async def test_blanks_around_names_tags_and_hooks_are_dropped(service: Service) -> None:
    task = await service.new_task(tags=["\tlong \n", "long"])
    named = await service.ask("PATCH", "/api/auth/me", {"displayName": "\ufeffAnn\r\n"})
    url = "https://hooks.example/in"
    body = {"url": f" {url}\n", "events": ["fill"], "secret": "s3cret \n"}
    hook = await service.ask("POST", "/api/hooks", body)

    assert (await service.ask("GET", f"/api/tasks/{task}")).json["tags"] == ["long"]
    assert len((await service.ask("GET", "/api/tasks?tag=%20long%0A")).json) == 1
    assert named.json["displayName"] == "Ann"
    assert hook.status == 201, hook.text
    kept = Receivers(service.settings.hooks_dir).read(Hook.get().receiver)
    assert (kept.url, kept.secret) == (url, "s3cret")


@pytest.mark.parametrize("bad", ["\x00", "\u202ecats", "ca\u2066ts", "c" * 10_000, "\x1b[31m", "\ud800", "\u200b"])
async def test_hostile_text_gets_words_at_every_field(service: Service, bad: str) -> None:
    for method, path, body in (
        ("POST", "/api/tasks", {"slug": bad, "hardcapSats": 1000}),
        ("POST", "/api/tasks", {"slug": bad, "type": "rune", "hardcapSats": 1000}),
        ("POST", "/api/autolist", {"inscriptionId": bad}),
        ("POST", "/api/autolist", {"inscriptionId": INSCRIPTION, "collectionId": bad}),
        ("POST", "/api/auth/challenge", {"address": bad}),
        ("POST", "/api/auth/approval", {"ordinalsAddress": bad}),
        ("POST", "/api/auth/verify", {"challengeId": "x", "address": OWNER, "signature": "", "publicKey": bad}),
        ("POST", "/api/wallet/withdraw", {"from": "vault", "inscriptionId": bad}),
        ("POST", "/api/hooks", {"url": bad, "events": ["fill"]}),
    ):
        answer = await service.ask(method, path, body)
        assert answer.status == 400 and answer.details, (path, body, answer.text)
        assert all(detail.isprintable() and len(detail) < 300 for detail in answer.details)
