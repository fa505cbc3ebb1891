"""Memories that a repository has left behind, newer ones that hold, and the repository itself; all invented.

Each prompt asks for what the newer memory says, most of them in the words of the old one.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from backstory.domain.memory import Kind
from bench.labelled import ANSWERS, LabelledSet, Question, Stored

PROJECT = "harbour"
_BEGUN = datetime(2026, 1, 5, 9, tzinfo=UTC)
_STALE = datetime(2026, 2, 3, 9, tzinfo=UTC)
_CHANGED = datetime(2026, 3, 2, 9, tzinfo=UTC)
_FRESH = datetime(2026, 3, 20, 9, tzinfo=UTC)
_ASKED = datetime(2026, 6, 1, 9, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleRow:
    """``before`` are files as they were when the ``stale`` memory was made, ``after`` what became of them: None for a
    deleted one. ``moved`` names a file and where it went."""

    stale: str
    fresh: str
    prompt: str
    before: Mapping[str, str]
    after: Mapping[str, str | None] = field(default_factory=dict)
    moved: tuple[str, str] | None = None


ROWS = (
    StaleRow(
        stale="Berth fees are worked out in src/fees/berth.py: gross tonnage times days, rounded up to full cents.",
        fresh="Berth fees are worked out by the tariff service now; the client is src/tariff/client.py.",
        prompt="where are berth fees worked out, I need to change the rounding of the tonnage",
        before={"src/fees/berth.py": "def berth_fee(tonnage, days):\n    return -(-tonnage * days // 1)\n"},
        after={"src/fees/berth.py": None, "src/tariff/client.py": "class TariffClient: ...\n"},
    ),
    StaleRow(
        stale="Ship positions come in over src/ais/tcp_listener.py, one thread a receiver, port 10110.",
        fresh="Ship positions come from the MQTT broker since spring; src/ais/mqtt_feed.py subscribes to ais/#.",
        prompt="add a receiver for ship positions",
        before={"src/ais/tcp_listener.py": "PORT = 10110\n"},
        after={"src/ais/tcp_listener.py": None, "src/ais/mqtt_feed.py": "TOPIC = 'ais/#'\n"},
    ),
    StaleRow(
        stale="Use split_manifest() to cut cargo manifests into pages of 50 lines before printing.",
        fresh="Cargo manifests are streamed, not cut; print with ManifestStream and let it break pages.",
        prompt="print a cargo manifest, how do I cut it into pages",
        before={"src/manifest/pages.py": "def split_manifest(lines):\n    return lines[:50]\n"},
        after={"src/manifest/pages.py": "class ManifestStream: ...\n"},
    ),
    StaleRow(
        stale="The pilot roster is imported with `tools/import.py roster --dry-run` first, then without.",
        fresh="The pilot roster is imported by the nightly job; run it by hand with `tools/nightly.py roster`.",
        prompt="import the new pilot roster, dry run first?",
        before={"tools/import.py": 'parser.add_argument("--dry-run")\n'},
        after={"tools/import.py": None, "tools/nightly.py": "def roster(): ...\n"},
    ),
    StaleRow(
        stale="Tide tables are cached for a day by TideCache in src/tides/cache.py; clear it after an import.",
        fresh="Tide tables are read from the database at each request, there is no cache of them to clear.",
        prompt="do I have to clear the tide tables cache after an import",
        before={"src/tides/cache.py": "class TideCache:\n    days = 1\n"},
        after={"src/tides/cache.py": None, "src/tides/query.py": "def tide_at(when): ...\n"},
    ),
    StaleRow(
        stale="Crane bookings are locked with acquire_crane_lock, a row lock of 30 s in crane_locks.",
        fresh="Crane bookings use an exclusion constraint on the time range; there is no lock to take any more.",
        prompt="crane bookings collide, do I take the row lock",
        before={"src/cranes/booking.py": "def acquire_crane_lock(): ...\nTABLE = 'crane_locks'\n"},
        after={"src/cranes/booking.py": "def book(): ...\n"},
    ),
    StaleRow(
        stale="Invoices are rendered from templates/invoice.html with the wkhtml step in src/billing/pdf.py.",
        fresh="Invoices are set with Typst: templates/invoice.typ, compiled in src/billing/typeset.py.",
        prompt="change the footer of the invoices template",
        before={"templates/invoice.html": "<p>total</p>\n", "src/billing/pdf.py": "def render(): ...\n"},
        after={
            "templates/invoice.html": None,
            "src/billing/pdf.py": None,
            "templates/invoice.typ": "#let total\n",
            "src/billing/typeset.py": "def compile_invoice(): ...\n",
        },
    ),
    StaleRow(
        stale="Set HARBOUR_LEGACY_AUTH=1 locally to log in without the identity provider.",
        fresh="Local login goes through the mock identity provider of `make up`; user ada, password harbour.",
        prompt="how do I log in locally without the identity provider",
        before={"src/auth/settings.py": "LEGACY = os.environ.get('HARBOUR_LEGACY_AUTH')\n"},
        after={"src/auth/settings.py": "ISSUER = 'http://localhost:9000'\n"},
    ),
    StaleRow(
        stale="The gate camera reader lives in src/gate/plates.py and needs the OpenALPR binary.",
        fresh="Number plates are read on the cameras; src/gate/events.py only takes their webhooks.",
        prompt="gate camera reads number plates wrongly, where is the reader",
        before={"src/gate/plates.py": "BINARY = 'alpr'\n"},
        after={"src/gate/plates.py": None, "src/gate/events.py": "def on_plate(): ...\n"},
    ),
    StaleRow(
        stale="Container weights are checked by verify_vgm in src/containers/weights.py, tolerance 5 %.",
        fresh="Container weights: the tolerance is 2 % since the audit, checked where the VGM message is parsed.",
        prompt="which tolerance do we allow when container weights are checked",
        before={"src/containers/weights.py": "def verify_vgm(weight, stated):\n    return True\n"},
        after={"src/containers/weights.py": "TOLERANCE = 0.02\n"},
    ),
    StaleRow(
        stale="Dangerous goods classes are listed in data/imdg_2022.csv; add new ones at the end.",
        fresh="Dangerous goods classes come from the IMDG feed, table imdg_classes; nobody edits them by hand.",
        prompt="add a new class to the dangerous goods list",
        before={"data/imdg_2022.csv": "1,explosives\n2,gases\n"},
        after={"data/imdg_2022.csv": None},
    ),
    StaleRow(
        stale="Queue workers are started by scripts/workers.sh, four of them, restarted by cron.",
        fresh="Queue workers run as the systemd unit harbour-worker@.service, six instances.",
        prompt="how many queue workers are started and by what",
        before={"scripts/workers.sh": "for i in 1 2 3 4; do work; done\n"},
        after={"scripts/workers.sh": None, "deploy/harbour-worker@.service": "[Service]\n"},
    ),
    StaleRow(
        stale="`compute_demurrage` in src/fees/late.py charges from the first hour of delay.",
        fresh="Demurrage has 24 free hours by the new contract; compute_demurrage in src/fees/demurrage.py has them.",
        prompt="from which hour do we charge demurrage",
        before={"src/fees/late.py": "def compute_demurrage(hours):\n    return hours * 80\n"},
        after={
            "src/fees/late.py": "from fees.demurrage import *\n",
            "src/fees/demurrage.py": "def compute_demurrage(hours):\n    return max(0, hours - 24) * 80\n",
        },
    ),
    StaleRow(
        stale="Weather warnings are polled every 10 minutes in src/weather/poll.py.",
        fresh="Weather warnings are pushed to /hooks/weather; src/weather/hook.py stores them at once.",
        prompt="how often do we poll for weather warnings",
        before={"src/weather/poll.py": "EVERY = 600\n"},
        after={"src/weather/poll.py": None, "src/weather/hook.py": "def on_warning(): ...\n"},
    ),
    StaleRow(
        stale="The map of the quay is drawn with QuayCanvas in web/src/quay/QuayCanvas.tsx.",
        fresh="The map of the quay is an SVG now, drawn by web/src/quay/QuayMap.tsx; layers are props of it.",
        prompt="draw the bollards on the map of the quay",
        before={"web/src/quay/QuayCanvas.tsx": "export function QuayCanvas() {}\n"},
        after={"web/src/quay/QuayCanvas.tsx": None, "web/src/quay/QuayMap.tsx": "export function QuayMap() {}\n"},
    ),
    StaleRow(
        stale="Reports are sent with send_report_mail(), which needs SMTP_RELAY_HOST.",
        fresh="Reports go out through the mail API: MailGateway.deliver, key in the vault under mail/api.",
        prompt="send the weekly report by mail, what does it need",
        before={"src/reports/mail.py": "HOST = env['SMTP_RELAY_HOST']\ndef send_report_mail(): ...\n"},
        after={"src/reports/mail.py": "class MailGateway:\n    def deliver(self): ...\n"},
    ),
    StaleRow(
        stale="Migrations are plain SQL in db/migrations/, numbered by hand, applied with db/apply.sh.",
        fresh="Migrations are written with sqitch: `sqitch add NAME`, deploy and revert scripts in db/sqitch/.",
        prompt="add a migration for the berth table, which number",
        before={"db/migrations/0001_berths.sql": "create table berths ();\n", "db/apply.sh": "psql\n"},
        after={
            "db/migrations/0001_berths.sql": None,
            "db/apply.sh": None,
            "db/sqitch/deploy/berths.sql": "begin;\n",
        },
    ),
    StaleRow(
        stale="Passwords of port users are hashed by hash_with_pepper (PBKDF2, 100,000 rounds).",
        fresh="Passwords of port users are hashed with Argon2id through libsodium, parameters in conf/argon.toml.",
        prompt="how are passwords of port users hashed, how many rounds",
        before={"src/auth/passwords.py": "def hash_with_pepper(): ...\n"},
        after={"src/auth/passwords.py": "import nacl.pwhash\n", "conf/argon.toml": "ops = 3\n"},
    ),
    StaleRow(
        stale="The seed data for tests is fixtures/port.json; regenerate it with fixtures/dump.py.",
        fresh="Tests build their seed data with the factories in tests/factories.py; there is no dump to regenerate.",
        prompt="regenerate the seed data for the tests",
        before={"fixtures/port.json": "{}\n", "fixtures/dump.py": "def dump(): ...\n"},
        after={"fixtures/port.json": None, "fixtures/dump.py": None, "tests/factories.py": "def a_ship(): ...\n"},
    ),
    StaleRow(
        stale="Logs are shipped by src/logging/fluent.py to port 24224, tag harbour.app.",
        fresh="Logs go to standard output as JSON and the platform collects them; nothing is shipped by us.",
        prompt="where are logs shipped to, which port and tag",
        before={"src/logging/fluent.py": "PORT = 24224\n"},
        after={"src/logging/fluent.py": None, "src/logging/plain.py": "FORMAT = 'json'\n"},
    ),
    StaleRow(
        stale="Customs messages are validated against schemas/customs-v2.xsd by CustomsValidator.",
        fresh="Customs messages are JSON since the switch to v3, validated by pydantic models in src/customs/v3.py.",
        prompt="validate customs messages against which schema",
        before={"schemas/customs-v2.xsd": "<schema/>\n", "src/customs/v2.py": "class CustomsValidator: ...\n"},
        after={"schemas/customs-v2.xsd": None, "src/customs/v2.py": None, "src/customs/v3.py": "class Message: ...\n"},
    ),
    StaleRow(
        stale="Feature switches are read from src/switches.py by is_enabled_for_port().",
        fresh="Feature switches are in Unleash, one environment a port; ask the client in src/flags/unleash.py.",
        prompt="switch a feature on for one port",
        before={"src/switches.py": "def is_enabled_for_port(): ...\n"},
        after={"src/switches.py": None, "src/flags/unleash.py": "def client(): ...\n"},
    ),
    StaleRow(
        stale="The mooring planner is src/planner/greedy.py; it places the longest ship first.",
        fresh="The mooring planner solves with CP-SAT now, limit 20 s; weights are in src/planner/model.py.",
        prompt="which ship does the mooring planner place first",
        before={"src/planner/greedy.py": "def longest_first(ships):\n    return sorted(ships)\n"},
        moved=("src/planner/greedy.py", "attic/greedy.py"),
        after={"src/planner/model.py": "LIMIT_S = 20\n"},
    ),
    StaleRow(
        stale="Currency rates are loaded by fetch_ecb_rates once a day at 16:30.",
        fresh="Currency rates are taken from the bank's feed every hour; RateFeed keeps the last hundred.",
        prompt="how often are currency rates loaded and from where",
        before={"src/money/rates.py": "def fetch_ecb_rates(): ...\n"},
        after={"src/money/rates.py": "class RateFeed: ...\n"},
    ),
)


def stale_set(beside: LabelledSet) -> LabelledSet:
    """The rows as a set of their own, among the memories of another one. Ids are ``stale 0``, ``fresh 0`` and so on."""
    memories = list(beside.memories)
    questions = []
    for place, row in enumerate(ROWS):
        memories += [
            Stored(id=f"stale {place}", text=row.stale, project=PROJECT, kind=Kind.FACT, learned=_STALE),
            Stored(id=f"fresh {place}", text=row.fresh, project=PROJECT, kind=Kind.FACT, learned=_FRESH),
        ]
        grades = {f"fresh {place}": ANSWERS}
        questions.append(Question(id=f"s{place}", kind="stale-trap", project=PROJECT, text=row.prompt, grades=grades))
    return LabelledSet(name="stale traps", now=_ASKED, memories=memories, questions=questions)


def make_repository(folder: Path) -> Path:
    """The repository of the rows, with its two dated commits, in an empty folder."""
    folder.mkdir(parents=True)
    _git(folder, "init", "--quiet")
    _write(folder, {path: text for row in ROWS for path, text in row.before.items()})
    _commit(folder, at=_BEGUN)
    for row in ROWS:
        if row.moved is not None:
            (folder / row.moved[1]).parent.mkdir(parents=True, exist_ok=True)
            (folder / row.moved[0]).rename(folder / row.moved[1])
        _write(folder, row.after)
    _commit(folder, at=_CHANGED)
    return folder


def _write(folder: Path, files: Mapping[str, str | None]) -> None:
    for path, text in files.items():
        if text is None:
            (folder / path).unlink()
        else:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")


def _commit(folder: Path, *, at: datetime) -> None:
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", "work", at=at)


def _git(folder: Path, *arguments: str, at: datetime = _BEGUN) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    who = {f"GIT_{role}_{what}": "bench" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    when = {"GIT_AUTHOR_DATE": at.isoformat(), "GIT_COMMITTER_DATE": at.isoformat(), "GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(["git", "-C", str(folder), *arguments], env=kept | who | when, check=True, stdin=subprocess.DEVNULL)
