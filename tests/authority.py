"""The certificates of an installation's hosts, made by the commands that docs/several-machines.md shows."""

from __future__ import annotations

import os
import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.needs import need

PAGE = Path(__file__).resolve().parents[1] / "docs" / "several-machines.md"


class Authority:
    """An authority, whose files are in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        need("openssl")
        directory.mkdir(parents=True)
        section = PAGE.read_text().partition("### Certificates\n")[2].partition("\n### ")[0]
        make_authority, self._make_certificate = re.findall(r"^```sh\n(.*?)^```", section, re.M | re.S)
        _run(make_authority, directory)

    def certificate(self, role: str, name: str, days: int = 365) -> Path:
        """Returns a directory with a new certificate for a host `name`; below 0 `days` it has expired."""
        made = self.directory / name
        made.mkdir()
        for file in ("ca.pem", "ca.key"):
            (made / file).write_bytes((self.directory / file).read_bytes())
        _run(self._make_certificate, made, role=role)
        if days != 365:
            self._sign_again(made / "cert.pem", datetime.now(UTC) + timedelta(days))
        (made / "ca.key").unlink()
        return made

    def _sign_again(self, file: Path, end: datetime) -> None:
        """Replaces a certificate by one that ends then; the openssl of Debian 13 makes none that has expired."""
        old = x509.load_pem_x509_certificate(file.read_bytes())
        new = x509.CertificateBuilder(old.issuer, old.subject, old.public_key(), old.serial_number)
        new = new.not_valid_before(end - timedelta(365)).not_valid_after(end)
        for extension in old.extensions:
            new = new.add_extension(extension.value, extension.critical)
        key = serialization.load_pem_private_key((self.directory / "ca.key").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        file.write_bytes(new.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))


def _run(commands: str, directory: Path, **variables: str) -> None:
    command = ["bash", "-euc", "umask 077; " + commands]
    subprocess.run(command, cwd=directory, env=os.environ | variables, check=True, capture_output=True)
