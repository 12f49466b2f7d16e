"""What opens a door: private keys, tokens of published form, passwords inside addresses.

A token is known by how it begins and how long it is, as its issuer publishes it. Rules as in
private_numbers.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from filters.private_numbers import Span

_TOKEN = re.compile(
    rb"(?<![A-Za-z0-9])(?:"
    + rb"|".join(
        (
            rb"(?:AKIA|ASIA)[A-Z2-7]{16}",  # AWS, access key
            rb"AKID[A-Za-z0-9]{32}",  # Tencent Cloud
            rb"LTAI[A-Za-z0-9]{12,26}",  # Alibaba Cloud
            rb"AIza[0-9A-Za-z_-]{35}",  # Google, API key
            rb"gh[pousr]_[A-Za-z0-9]{36,251}",  # GitHub
            rb"github_pat_[A-Za-z0-9_]{22,251}",
            rb"glpat-[A-Za-z0-9_-]{20,64}",  # GitLab
            rb"xox[abeoprs]-[A-Za-z0-9-]{10,251}",  # Slack
            rb"xapp-[A-Za-z0-9-]{20,251}",
            rb"eyJ[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,4000}",  # JWT
            # OpenAI, Anthropic; with a digit, which a CSS class seldom has
            rb"sk-(?:proj-|svcacct-|admin-|ant-[a-z0-9]{1,8}-)?(?=[A-Za-z_-]{0,250}\d)[A-Za-z0-9_-]{32,251}",
            rb"[sr]k_live_[A-Za-z0-9]{16,251}",  # Stripe
            rb"whsec_[A-Za-z0-9+/]{32,251}",  # Stripe, of a webhook
            rb"GOCSPX-[A-Za-z0-9_-]{28}",  # Google, OAuth client
            rb"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}",  # SendGrid
            rb"dop_v1_[a-f0-9]{64}",  # DigitalOcean
            rb"dckr_pat_[A-Za-z0-9_-]{27}",  # Docker
            rb"shpat_[a-fA-F0-9]{32}",  # Shopify
            rb"hf_[A-Za-z]{34}",  # Hugging Face
            rb"npm_[A-Za-z0-9]{36}",
            rb"pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,251}",
        )
    )
    + rb")(?![A-Za-z0-9])"
)
_AWS_SECRET = re.compile(
    rb"aws_secret_(?:access_)?key[\"']?\s{0,3}[=:]\s{0,3}[\"']?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
    re.I,
)
# Azure: of a storage account 64 bytes, of a service bus or a hub 32; the emulator's is published.
_AZURE = re.compile(
    rb"Acc(?:ountKey=([A-Za-z0-9+/]{86}==)|essKey=([A-Za-z0-9+/]{43}=))(?![A-Za-z0-9+/=])", re.I
)
_EMULATOR = b"Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq"
_KEY = re.compile(
    rb"-----BEGIN ((?:[A-Z0-9]{1,12} ){0,3})PRIVATE KEY(?: BLOCK)?-----"
    rb"(?:(?:[^-]|-(?!----)){32,20000}-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    rb"|(?:[A-Za-z0-9+/=\s]|\\n){64,20000})"  # cut off
)
# scheme://user:password@host
_PASSWORD = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/@:]{1,64}:([^\s/@:]{3,128})@")
_BLANK = re.compile(rb"^[$<{%*\[]|pass|^x+$|secret|example|^\*+$", re.I)


def tokens(text: bytes, begin: int, end: int) -> Iterator[Span]:
    del end
    match = _TOKEN.match(text, begin) or _KEY.match(text, begin)
    if match and b"EXAMPLE" not in match[0]:  # as AWS writes those of its manuals
        yield match.span()
    elif (match := _AWS_SECRET.match(text, begin)) and b"EXAMPLE" not in match[1]:
        yield match.span(1)
    elif (match := _AZURE.match(text, begin)) and _EMULATOR not in match[0]:
        yield match.span(match.lastindex or 0)


def passwords(text: bytes, begin: int, end: int) -> Iterator[Span]:
    scheme = text.rfind(b"://", max(0, begin - 200), begin)
    if scheme < 0:
        return
    for match in _PASSWORD.finditer(text, max(0, scheme - 21), end):
        if match.end() == end and not _BLANK.search(match[1]):
            yield match.span(1)
