"""Credentials assembled at run time, so that no file of this repository contains one."""

import base64

_BODY = "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5zA7bC9dE1fG3"


def _segment(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


OPENAI = "sk" + "-" + _BODY
OPENAI_PROJECT = "sk" + "-proj-" + _BODY[:20] + "_" + _BODY[20:40] + "-" + _BODY[:9]
GITHUB = "gh" + "p_" + _BODY[:36]
AWS_ID = "AK" + "IA" + "Q7RS9TU1VW3XY5ZA"
AWS_SECRET = "wJal" + "rXUtnFEMI/K7MDENG/bPxRfiCYzQ8" + "kL0pVt9"
JWT = ".".join(
    [_segment('{"alg":"HS256","typ":"JWT"}'), _segment('{"sub":"1234567890"}'), _BODY[:43]]
)
SLACK = "xo" + "xb-" + "123456789012-" + _BODY[:24]
PASSWORD = "hunter" + "2!x"

TOKENS = {"openai": OPENAI, "openai-project": OPENAI_PROJECT, "github": GITHUB}
TOKENS |= {"aws-id": AWS_ID, "jwt": JWT, "slack": SLACK}


def pem(*, lines: int = 12, kind: str = "RSA ") -> str:
    """Return a text with the complete form of a private key."""
    body = base64.b64encode(bytes((i * 37 + 11) % 256 for i in range(48 * lines))).decode()
    wrapped = [body[i : i + 64] for i in range(0, len(body), 64)]
    edge = f"{kind}PRIVATE" + " KEY-----"
    return "\n".join(["-----BEGIN " + edge, *wrapped, "-----END " + edge])
