"""Android's form of public keys, and signatures made with them: written from Android's description, not adb-shell's."""

from __future__ import annotations

import base64
import struct

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa, utils

_WORDS = 64
_MODULUS_BYTES = 4 * _WORDS
# Words of the modulus, an inverse for Montgomery's method, the modulus, another help, the exponent.
_FORM = struct.Struct(f"<II{_MODULUS_BYTES}s{_MODULUS_BYTES}sI")


def parse_public_key(line: bytes) -> rsa.RSAPublicKey:
    """The key of an AUTH packet or of a line of `adb_keys`: base64, then a name.

    Raises:
        ValueError: it is no such key.
    """
    words, inverse, modulus, square, exponent = _FORM.unpack(base64.b64decode(line.split(None, 1)[0], validate=True))
    n = int.from_bytes(modulus, "little")
    if words != _WORDS or exponent not in (3, 65537):
        raise ValueError("not an Android public key")
    if (inverse * n + 1) % 2**32 or int.from_bytes(square, "little") != pow(2, 2 * 8 * _MODULUS_BYTES, n):
        raise ValueError("the key's precomputed values are wrong")
    return rsa.RSAPublicNumbers(exponent, n).public_key()


def is_signed(key: rsa.RSAPublicKey, token: bytes, signature: bytes) -> bool:
    """Whether `signature` of the 20-byte `token` was made with the private half of `key`."""
    try:
        key.verify(signature, token, padding.PKCS1v15(), utils.Prehashed(hashes.SHA1()))
    except InvalidSignature:
        return False
    return True
