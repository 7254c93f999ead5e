"""Trying a survey out with phones of the same network: a certificate that this machine makes for
its own address. Nobody has vouched for it, so it protects from listeners, not from impostors.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from discreet.errors import DataError

_ELSEWHERE = "192.0.2.1"  # nobody's (RFC 5737); nothing is sent there
_DAYS = 30


@dataclass(frozen=True)
class OwnCertificate:
    """The files of a certificate and its key, and the SHA-256 that browsers show."""

    cert: str
    key: str
    sha256: str


def own_address() -> str:
    """The address of this machine in its network; raises DataError if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect((_ELSEWHERE, 9))  # chooses a route, sends nothing
            address = str(sock.getsockname()[0])
        except OSError:
            address = "0.0.0.0"
    if ipaddress.ip_address(address).is_unspecified:
        raise DataError(
            "this machine is in no network, so phones cannot reach it; connect it to one (the same "
            "Wi-Fi as the phones), or leave out --lan"
        )
    return address


def make_certificate(folder: str, address: str) -> OwnCertificate:
    """Make a key and a self-signed certificate for an address, in a folder of this process."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "discreet serve --lan")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=_DAYS))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), False
        )
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False)
        .sign(key, hashes.SHA256())
    )
    cert, private = Path(folder) / "lan.pem", Path(folder) / "lan.key"
    cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    with open(os.open(private, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
    return OwnCertificate(
        str(cert), str(private), made.fingerprint(hashes.SHA256()).hex(":").upper()
    )
