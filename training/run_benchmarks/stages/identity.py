"""A certificate for one connection: whoever is told which it is can tell its holder from everybody else."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

DAY = timedelta(days=1)


def new_identity() -> tuple[str, str]:
    """A certificate that nobody has signed but itself, and its key, both PEM. Its times and names mean nothing."""
    from cryptography import x509  # late: few runs have so many hosts, and it belongs to ssh alone
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(timezone.utc)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "flagperf")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    certificate = builder.not_valid_before(now - DAY).not_valid_after(now + DAY).sign(key, hashes.SHA256())
    encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain)
    return certificate.public_bytes(encoding).decode(), private.decode()
