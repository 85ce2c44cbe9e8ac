"""An identity provider for tests: its keys, the tokens it signs, and the page of its key set."""

import json
import time
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ISSUER = "https://issuer"

_RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


class SigningKey:
    """A key pair."""

    def __init__(self, kid: str, algorithm: str = "ES256") -> None:
        self.kid = kid
        self.algorithm = algorithm
        self.jwk: dict[str, Any]
        self.private: Any
        if algorithm.startswith(("RS", "PS")):
            self.private = _RSA_KEY
            self.jwk = RSAAlgorithm.to_jwk(_RSA_KEY.public_key(), as_dict=True)
        elif algorithm == "EdDSA":
            self.private = ed25519.Ed25519PrivateKey.generate()
            self.jwk = OKPAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        else:
            curve = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1()}[algorithm]
            self.private = ec.generate_private_key(curve)
            self.jwk = ECAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        self.jwk |= {"kid": kid, "use": "sig"}

    def token(self, subject: str = "ann", lasts_seconds: float = 600, **claims: Any) -> str:
        """A token that holds; a claim of None is left out."""
        known = {"iss": ISSUER, "sub": subject, "exp": time.time() + lasts_seconds}
        present = {name: value for name, value in (known | claims).items() if value is not None}
        return jwt.encode(present, self.private, self.algorithm, headers={"kid": self.kid})

    def bearer(self, subject: str = "ann", **claims: Any) -> dict[str, str]:
        """The headers of a request with a token."""
        return {"authorization": f"Bearer {self.token(subject, **claims)}"}


def key_set(*keys: SigningKey | dict[str, Any]) -> bytes:
    """The JWK Set of these keys."""
    jwks = [key.jwk if isinstance(key, SigningKey) else key for key in keys]
    return json.dumps({"keys": jwks}).encode()
