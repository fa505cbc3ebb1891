"""Secrets that can be told by their own form or their frame: provider tokens, key blocks, URLs, headers, flags."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from backstory.domain.secret_values import has_letter_and_digit, is_opaque, is_reference, is_stand_in


class Span(NamedTuple):
    """``text[start:end]`` is a secret of this kind."""

    start: int
    end: int
    kind: str


# Prefixes and lengths as the providers publish them; lengths are lower bounds, since providers lengthen their tokens.
# One alternative a row, without groups that capture, a literal first: so the engine drops most rows at one glance.
# "(?<!-eyJ)" and the like stand where the body may hold a sign that parts words and may fail late: a long run is then
# tried once only, which keeps the search linear.
_TOKENS: tuple[tuple[str, str], ...] = (
    ("github-token", r"gh[pousr]_[A-Za-z0-9]{30,}"),
    ("github-token", r"github_pat_[A-Za-z0-9_]{22,}"),
    ("gitlab-token", r"gl(?:pat|oas|dt|rt|cbt|ptt|ft|imt|agent|soat|ffct)-[A-Za-z0-9_.-]{20,}"),
    ("aws-access-key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("slack-token", r"xox[abceoprs]-[A-Za-z0-9-]{10,}"),
    ("slack-token", r"xapp-[0-9]-[A-Za-z0-9-]{10,}"),
    ("stripe-key", r"[sr]k_(?:live|test)_[A-Za-z0-9]{10,}"),
    ("stripe-key", r"whsec_[A-Za-z0-9+/=]{24,}"),
    ("anthropic-key", r"sk-ant-[A-Za-z0-9_-]{20,}"),
    ("openai-key", r"sk-(?:proj-|svcacct-|admin-|or-v1-|lf-)?[A-Za-z0-9_-]{20,}"),
    ("google-key", r"AIza[A-Za-z0-9_-]{30,}"),
    ("google-key", r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    ("google-key", r"ya29\.[A-Za-z0-9_-]{20,}"),
    ("npm-token", r"npm_[A-Za-z0-9]{30,}"),
    ("pypi-token", r"pypi-Ag[A-Za-z0-9_-]{20,}"),
    ("huggingface-token", r"hf_[A-Za-z0-9]{30,}"),
    ("huggingface-token", r"api_org_[A-Za-z0-9]{30,}"),
    ("sendgrid-key", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("twilio-key", r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("digitalocean-token", r"do[opr]_v1_[0-9a-f]{40,}"),
    ("age-key", r"AGE-SECRET-KEY-1[0-9A-Za-z]{40,}"),
    ("age-key", r"age-secret-key-1[0-9a-z]{40,}"),
    ("telegram-token", r"[0-9]{8,12}:AA[A-Za-z0-9_-]{30,}"),
    ("discord-token", r"[MNO](?<![.-][MNO])[A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"),
    ("azure-secret", r"[A-Za-z0-9](?<![.~-][A-Za-z0-9])[A-Za-z0-9_.~-]{2}[0-9]Q~[A-Za-z0-9_.~-]{31,}"),
    ("docker-token", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    ("mem0-key", r"m0-[A-Za-z0-9]{24,}"),
    ("mailgun-key", r"key-[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("mailchimp-key", r"[0-9a-f]{32}-us[0-9]{1,2}(?![A-Za-z0-9])"),
    ("shopify-token", r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"),
    ("square-token", r"sq0(?:atp|csp)-[A-Za-z0-9_-]{22,}"),
    ("notion-token", r"(?:ntn|secret)_[A-Za-z0-9]{40,}"),
    ("linear-key", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    ("figma-token", r"figd_[A-Za-z0-9_-]{20,}"),
    ("atlassian-token", r"ATATT3[A-Za-z0-9_=-]{50,}"),
    ("postman-key", r"PMAK-[0-9a-f]{24}-[0-9a-f]{30,}"),
    ("grafana-token", r"gl(?:sa|c)_[A-Za-z0-9_+/=]{30,}"),
    ("vault-token", r"hv[sb]\.[A-Za-z0-9_-]{20,}"),
    ("doppler-token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{30,}"),
    ("databricks-token", r"dapi[0-9a-f]{32}"),
    ("supabase-key", r"sbp_[0-9a-f]{40}"),
    ("supabase-key", r"sb_secret_[A-Za-z0-9_-]{20,}"),
    ("sentry-token", r"sntry[su]_[A-Za-z0-9+/=_-]{40,}"),
    ("new-relic-key", r"NRAK-[A-Z0-9]{27}"),
    ("airtable-token", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("1password-token", r"ops_eyJ[A-Za-z0-9_-]{50,}"),
    ("tailscale-key", r"tskey-[a-z]{2,12}-[A-Za-z0-9-]{20,}"),
    ("terraform-token", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,}"),
    ("pulumi-token", r"pul-[0-9a-f]{40}"),
    ("planetscale-token", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,}"),
    ("rubygems-key", r"rubygems_[0-9a-f]{48}"),
    ("netlify-token", r"nf[pc]_[A-Za-z0-9]{36,}"),
    ("model-api-key", r"gsk_[A-Za-z0-9]{40,}"),
    ("model-api-key", r"xai-[A-Za-z0-9]{60,}"),
    ("model-api-key", r"pplx-[A-Za-z0-9]{40,}"),
    ("model-api-key", r"nvapi-[A-Za-z0-9_-]{40,}"),
    ("model-api-key", r"r8_[A-Za-z0-9]{30,}"),
    ("model-api-key", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{8,}"),
    ("model-api-key", r"jina_[A-Za-z0-9_-]{40,}"),
    # Header and payload are JSON objects, so both begin with eyJ; the signature may be missing; the encrypted form
    # has five parts.
    ("jwt", r"eyJ(?<!-eyJ)[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*)?"),
    ("jwt", r"eyJ(?<!-eyJ)[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+){3}"),
)
# The letter of an escaped line end ("\\n" in JSON) is no part of the word after it.
_TOKEN = re.compile(
    r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))(?=[A-Za-z0-9])(?:" + "|".join(f"{pattern}()" for _, pattern in _TOKENS) + ")",
)


def find_tokens(text: str) -> Iterator[Span]:
    """Tokens that carry their maker's mark, in order."""
    for match in _TOKEN.finditer(text):
        kind = _TOKENS[(match.lastindex or 1) - 1][0]
        value = match.group()
        if is_stand_in(value) or is_stand_in(max(re.split("[-_.]", value), key=len)):
            continue
        if value.startswith("sk-") and not _has_key_body(value):
            continue
        yield Span(match.start(), match.end(), kind)


def _has_key_body(value: str) -> bool:
    """Whether ``sk-...`` is a key and not a class name such as those of style sheets: one long run of mixed signs."""
    return any(len(run) >= 12 and has_letter_and_digit(run) for run in re.split("[-_]", value))


# --- private key blocks -----------------------------------------------------------------------------------------------

_FENCE = re.compile(r"-----(?P<side>BEGIN|END) (?P<label>[A-Z0-9 ]{0,40}?)-----")
# Key text after or before a fence: base64 lines, also indented, quoted, with a diff mark, or with line ends as "\\n".
_KEY_TEXT = re.compile(r"(?:(?:\\+[nr]|[\s>|+\"',])*+[A-Za-z0-9+/=]{16,}+)++")
_KEY_LINE = re.compile(r"[ \t>|+]*[A-Za-z0-9+/=]{4,}[\s\"',]*")
_BASE64 = re.compile(r"[A-Za-z0-9+/=]{12}")
_PUTTY = re.compile(r"Private-Lines: [0-9]{1,4}\s+(?P<value>[A-Za-z0-9+/=]++(?:\s+[A-Za-z0-9+/=]{16,}+)*+)")


def find_key_blocks(text: str) -> Iterator[Span]:
    """PEM, OpenSSH, PGP and PuTTY private keys, fences included; a block cut off at either end still counts."""
    done = 0
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if "PRIVATE KEY" not in fence["label"]:
            opened = None
            continue
        if fence["side"] == "BEGIN":
            opened = fence
            if body := _KEY_TEXT.match(text, fence.end()):
                done = body.end()
                yield Span(fence.start(), done, "private-key")
        elif opened is not None:
            if _BASE64.search(text, opened.end(), fence.start()):
                yield Span(opened.start(), fence.end(), "private-key")
            done, opened = fence.end(), None
        else:
            start = _body_start(text, fence.start(), done)
            done = fence.end()
            if start < fence.start():
                yield Span(start, done, "private-key")
    for putty in _PUTTY.finditer(text):
        yield Span(*putty.span("value"), "private-key")


def _body_start(text: str, end: int, floor: int) -> int:
    """Where the key lines begin that end at ``end``; ``end`` itself when there are none."""
    start = end
    while start > floor:
        line = max(text.rfind("\n", floor, start - 1) + 1, floor)
        if not _KEY_LINE.fullmatch(text, line, start):
            break
        start = line
    return start


# --- frames: the secret is what stands at one place of a known form ---------------------------------------------------


def _any(value: str) -> bool:
    return True


def _mixed(value: str) -> bool:
    """Base64, digits or capitals inside: not a word of prose."""
    return has_letter_and_digit(value) or value.endswith("=") or re.search("[a-z][A-Z]", value) is not None


def _token_like(value: str) -> bool:
    return len(value) >= 16 and has_letter_and_digit(value) and re.fullmatch(r"[a-z]+[-_]?\d", value) is None


def _opaque(value: str) -> bool:
    return is_opaque(value, min_chars=16)


# Patterns run over the lower-cased text; each begins with a literal, so that the scan is a plain substring search.
_FRAMES: tuple[tuple[str, str, Callable[[str], bool]], ...] = (
    ("password", r"""://[^\s:/@?\#"'`<>]{0,100}:(?P<value>[^\s/"'`<>]{1,200})@(?=[\w\[.$%{-])""", _any),
    (
        "password",
        r"""://(?<!ttp://)(?<!tps://)[^\s:/@?\#"'`<>]{1,100}:(?P<value>(?!\d{1,5}/)[^\s@"'`<>]{1,200})@(?=[\w\[.-])""",
        _any,
    ),
    ("token", r"""://(?P<value>[a-z0-9_.-]{16,200})@(?=\w)""", _opaque),
    (
        "authorization",
        r"""authorization["']?\s{0,4}[:=]\s{0,4}["'`]?(?:bearer|basic|token|digest|apikey|key|negotiate|hmac)"""
        r"""[ :]\s{0,4}(?P<value>[^\s"'`,;]{8,})""",
        _mixed,
    ),
    ("authorization", r"""authorization["']?\s{0,4}[:=]\s{0,4}["'`]?(?P<value>[^\s"'`,;]{16,})""", _opaque),
    ("bearer-token", r"""bearer[ :=]{1,4}["'`]?(?P<value>[a-z0-9._~+/=-]{16,})""", _token_like),
    ("password", r"""sshpass\s{1,4}-p\s{0,4}["']?(?P<value>[^\s"']{3,200})""", _any),
    ("password", r"with (?:[a-z]{1,20} ){0,4}password '(?P<value>[^'\n]{3,200})'", _any),
    ("password", r"identified (?:with \S{1,40} )?by '(?P<value>[^'\n]{3,200})'", _any),
    ("slack-webhook", r"hooks.slack.com/(?:services|workflows|triggers)/(?P<value>[a-z0-9/_+-]{20,})", _any),
    ("discord-webhook", r"/api/(?:v\d{1,2}/)?webhooks/\d{5,25}/(?P<value>[a-z0-9_-]{20,})", _any),
    ("teams-webhook", r"webhook.office.com/webhookb2/(?P<value>[a-z0-9/@_-]{40,})", _any),
    ("signature", r"sig=(?<=[?&;]sig=)(?P<value>[a-z0-9%+/=_-]{20,})", _mixed),
    ("signature", r"x-(?:amz|goog)-(?:signature|security-token)=(?P<value>[a-z0-9%+/=_-]{16,})", _any),
)
_FRAME_PATTERNS = tuple((kind, re.compile(pattern), accepts) for kind, pattern, accepts in _FRAMES)


def find_framed(text: str, lowered: str) -> Iterator[Span]:
    """Secrets in URLs, headers, webhooks and signed links. ``lowered`` is ``text`` in small letters, same length."""
    for kind, pattern, accepts in _FRAME_PATTERNS:
        for match in pattern.finditer(lowered):
            value = text[slice(*match.span("value"))]
            if accepts(value) and not is_stand_in(value) and not is_reference(value):
                yield Span(*match.span("value"), kind)


# A short flag means a password only to some commands, so the command is looked for before it on the same line.
_FLAGS = tuple(
    (re.compile(flag), command)
    for flag, command in (
        (r"""-(?:u|-user|-proxy-user)[ =]["']?[^\s:"']{1,64}:(?P<value>[^\s"']{3,200})""", ("curl ", "wget ", "http ")),
        (r"""-p(?P<value>[^\s"'-][^\s"']{2,200})""", ("mysql ", "mysqldump ", "mysqladmin ", "mariadb ")),
        (r"""-p[ =]["']?(?P<value>[^\s"'-][^\s"']{2,200})""", (" login ",)),
        (r"""-a[ =]["']?(?P<value>[^\s"'-][^\s"']{2,200})""", ("redis-cli ",)),
    )
)
_COMMAND_CHARS = 300


def find_flags(text: str, lowered: str) -> Iterator[Span]:
    """Passwords given on a command line by a short flag, such as ``curl -u name:password``."""
    for flag, commands in _FLAGS:
        if not any(command in lowered for command in commands):
            continue
        for match in flag.finditer(lowered):
            value = text[slice(*match.span("value"))]
            before = lowered[max(match.start() - _COMMAND_CHARS, 0) : match.start()].rpartition("\n")[2]
            if not before[-1:].isspace() or not any(command in before for command in commands):
                continue
            if not is_stand_in(value) and not is_reference(value):
                yield Span(*match.span("value"), "password")


_COOKIE = re.compile(r"cookie[\"']?:[ \t]*(?P<pairs>[^\n\r]*)")
_COOKIE_PAIR = re.compile(r"(?<![\w.%-])(?P<name>[\w.%-]{1,64})=(?P<value>[^;\s\"',]{8,})")
_SESSION_NAME = re.compile(r"sess|sid|auth|token|jwt|csrf|xsrf|login|remember")


def find_cookies(text: str, lowered: str) -> Iterator[Span]:
    """Session values in Cookie and Set-Cookie headers; harmless cookies such as a theme stay."""
    for header in _COOKIE.finditer(lowered):
        for pair in _COOKIE_PAIR.finditer(lowered, *header.span("pairs")):
            value = text[slice(*pair.span("value"))]
            if is_stand_in(value) or is_reference(value):
                continue
            if is_opaque(value, min_chars=16) or (_SESSION_NAME.search(pair["name"]) and has_letter_and_digit(value)):
                yield Span(*pair.span("value"), "cookie")
