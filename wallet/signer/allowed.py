"""The settings' whitelist and administrators, with addresses in their normal form."""

from __future__ import annotations

from msgspec.structs import replace

from core.errors import SettingsError
from core.settings import Settings
from wallet.address import AddressError, pasted_sign_in_address


def with_normal_addresses(settings: Settings) -> Settings:
    """Returns the settings with every address normalised. Raises SettingsError, with one line for each invalid one."""
    problems: list[str] = []
    whitelist = _normal("BIDKEEPER_WHITELIST", settings.whitelist - {"*"}, problems) | settings.whitelist & {"*"}
    admins = _normal("BIDKEEPER_ADMINS", settings.admins, problems)
    if problems:
        raise SettingsError(problems)
    return replace(settings, whitelist=whitelist, admins=admins)


def _normal(setting: str, texts: frozenset[str], problems: list[str]) -> frozenset[str]:
    found = set()
    for text in sorted(texts):
        try:
            found.add(pasted_sign_in_address(text))
        except AddressError as error:
            problems.append(f"{setting}: {text[:100]}: {error}")
    return frozenset(found)
