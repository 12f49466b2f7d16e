"""Addresses in the form in which copies of a page have the same one: the level `url` of a mixture.

    HTTPS://www.Example.com:443/A/%7Eb/?utm_source=x&b=2&a=1#top    example.com/A/~b?a=1&b=2

After RFC 3986, 6.2: case and percent-encoding, without port. Beyond it, as crawlers do: without
scheme, `www.`, fragment, final slash, index page, the parameters that only say who came from where
(TRACKING), and session ids; parameters are sorted. The case of a path stays: it names other pages.
What a page says of itself (<link rel="canonical">) is not asked: sites name their front page there.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from filters.addresses import split, without_www

# Of campaigns and clicks, by who documents them: Google (utm_, gclid, gbraid, dclid, _ga, _gl),
# Meta (fbclid, igshid), Microsoft (msclkid), Yandex (yclid, _openstat), Mailchimp (mc_), HubSpot
# (_hs), Matomo (mtm_, pk_), TikTok (ttclid), X (twclid), Alibaba (spm, scm, pvid), Baidu (bd_vid),
# Bilibili (vd_source, spm_id_from), Weibo (weibo_id). Session ids: PHP, Java, ASP.
TRACKING = re.compile(
    r"utm_\w*|mc_\w*|mtm_\w*|pk_\w*|_hs\w*|__hs\w*|gclid|gclsrc|dclid|gbraid|wbraid|_ga|_gl|fbclid|"
    r"igshid|msclkid|yclid|_openstat|ttclid|twclid|spm|scm|pvid|bd_vid|vd_source|spm_id_from|"
    r"weibo_id|phpsessid|jsessionid|aspsessionid\w*",
    re.IGNORECASE,
)
_SESSION = re.compile(r";(?:jsessionid|phpsessid)=[^;/?]*", re.IGNORECASE)
_INDEX = re.compile(r"/(?:index|default)\.(?:html?|php|aspx?|jsp)\Z", re.IGNORECASE)
_ESCAPED = re.compile(r"(?:%[0-9a-fA-F]{2})+")
_RESERVED = re.compile(r"[\x00-\x20%/?#\[\]@!$&'()*+,;=\x7f]")  # mean another thing when escaped
_LONE = re.compile("[\udc80-\udcff]")  # bytes that are no UTF-8


def canonical(url: str) -> str:
    """The form; an address without a host (urn:isbn:1, a user's own key) as it is."""
    host, rest = split(url)
    if not host:
        return url.strip()
    path, _, query = rest.partition("#")[0].replace(" ", "%20").partition("?")
    if "%" in path + query:
        path, query = _ESCAPED.sub(_plain, path), _ESCAPED.sub(_plain, query)
    path = _INDEX.sub("", _SESSION.sub("", path.replace("\\", "/"))).rstrip("/")
    if query:
        named = (part for part in query.split("&") if part)
        kept = sorted(part for part in named if not TRACKING.fullmatch(part.partition("=")[0]))
        query = "?" + "&".join(kept) if kept else ""
    return without_www(host) + path + query


def _plain(escaped: re.Match[str]) -> str:
    """What may stand without an escape; the rest with one, in upper case."""
    text = unquote(escaped[0], errors="surrogateescape")
    text = _RESERVED.sub(lambda match: f"%{ord(match[0]):02X}", text)
    return _LONE.sub(lambda match: f"%{ord(match[0]) - 0xDC00:02X}", text)
