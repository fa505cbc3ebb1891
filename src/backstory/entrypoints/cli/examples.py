"""What ``--help`` shows as examples: for each command the lines one would type, the plainest first.

Imported for help and for the reference pages only. Lines fit into 78 columns; what needs a word says it behind a #.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

EXAMPLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "remember": (
            'backstory remember "Migrations run before the deploy, never after."',
            'backstory remember "Reviews need two approvals." --global --tag process',
            'backstory remember "The API moved to port 8443." --supersedes "#12"',
            "git log -1 --format=%B | backstory remember --kind decision",
        ),
        "recall": (
            'backstory recall "when do migrations run?"',
            'backstory recall "cache lifetime" --kind decision --since 2026-03',
            'backstory recall "what did we say about retries" --in evidence',
            'backstory recall "staging cluster" --json --limit 3',
        ),
        "list": (
            "backstory list",
            "backstory list --kind decision --tag auth --since 30d",
            "backstory list --forgotten         # what was forgotten, for `undo`",
        ),
        "show": ('backstory show "#12"', 'backstory show "heron-2"            # the one memory that holds this text'),
        "why": ('backstory why "#12"', 'backstory why 12 --query "deploy to staging"'),
        "update": (
            'backstory update "#12" "We cache vendor prices for 30 minutes."',
            "backstory update 12 --kind decision --tag vendor --tag cache",
            "backstory update 12 --expires 7d --reason 'until the migration is done'",
        ),
        "forget": (
            'backstory forget "#12"',
            "backstory forget 12 15 --reason 'the service is gone'",
            'backstory forget --match "heron-1" --all --dry-run',
        ),
        "erase": (
            'backstory erase "#12" --dry-run     # what would go, and from where',
            'backstory erase "#12"',
            "backstory erase --text - < leaked-token.txt",
            "backstory erase --receipts",
        ),
        "pin": ('backstory pin "#12"', "backstory pin 12 --off"),
        "useful": ('backstory useful "#12"',),
        "irrelevant": ('backstory irrelevant "#12" "#15"',),
        "conflicts": ("backstory conflicts",),
        "resolve": (
            'backstory resolve "#12" --keep      # it holds, the other side goes',
            'backstory resolve "#12" --both',
            'backstory resolve "#12" --with "Staging is heron-2, production heron-1."',
        ),
        "tags": ("backstory tags",),
        "retag": ("backstory retag db database --dry-run", "backstory retag db database"),
        "history": ("backstory history", 'backstory history "#12"', "backstory history --limit 100 --json"),
        "undo": ("backstory undo                      # the newest change", "backstory undo 01K8Z3Q4"),
        "inspect": ("backstory inspect", "backstory inspect silent            # what was kept back, and why"),
        "shown": ("backstory shown", "backstory shown --limit 1 --json"),
        "prune": ("backstory prune --dry-run", "backstory prune"),
        "dream": (
            "backstory dream --rules --dry-run   # what would be kept, without a model",
            "backstory dream --all",
        ),
        "consolidate": ("backstory consolidate --dry-run", "backstory consolidate --pass exact --yes"),
        "review": ("backstory review",),
        "review list": ("backstory review list",),
        "review accept": ('backstory review accept "#12" "#13"',),
        "review reject": ('backstory review reject "#14"',),
        "projects": ("backstory projects", "backstory projects show shop"),
        "projects list": ("backstory projects list --json",),
        "projects show": ("backstory projects show shop", "backstory projects show ."),
        "projects merge": ("backstory projects merge shop-old shop",),
        "projects split": ("backstory projects split shop --alias ~/code/api --name api --dry-run",),
        "projects rename": ("backstory projects rename shop webshop",),
        "sessions": ("backstory sessions", "backstory sessions --limit 5 --all-projects"),
        "sessions digest": ("backstory sessions digest ses_4f2a --dry-run",),
        "sessions prune": ("backstory sessions prune --older-than 90d --dry-run",),
        "session": (
            "backstory session ses_4f2a          # its messages, a page at a time",
            'backstory session ses_4f2a --search "retry limit"',
            "backstory session ses_4f2a --digest",
        ),
        "export": (
            "backstory export memories.jsonl --everything",
            "backstory export notes --format markdown",
            "backstory export | grep heron-2",
        ),
        "import": (
            "backstory import opencode --dry-run",
            "backstory import .opencode          # every older store found there",
            "backstory import memories.jsonl",
            "backstory import --list",
        ),
        "sync": ("backstory sync --dry-run", "backstory sync origin"),
        "embed": ("backstory embed",),
        "backup": ("backstory backup ~/backstory-backup.db",),
        "restore": ("backstory restore ~/backstory-backup.db",),
        "check": (
            "backstory check",
            "backstory check --code              # memories that name code that is gone",
            "backstory check --salvage rescued.jsonl",
        ),
        "reindex": ("backstory reindex",),
        "scan": ("backstory scan",),
        "config": (
            "backstory config",
            "backstory config get recall.limit",
            "backstory config set recall.limit 3",
            "BACKSTORY_RECALL_LIMIT=3 backstory config",
        ),
        "config get": ("backstory config get recall.limit",),
        "config set": (
            "backstory config set recall.limit 3",
            "backstory config set context.inject false --dry-run",
        ),
        "config unset": ("backstory config unset recall.limit",),
        "status": ("backstory status", "backstory status --cost --days 30"),
        "install": (
            "backstory install opencode",
            "backstory install opencode --project --dry-run",
            "backstory install claude-code",
        ),
        "uninstall": ("backstory uninstall opencode --dry-run", "backstory uninstall opencode"),
        "doctor": ("backstory doctor", "backstory doctor --probe"),
        "tools": ("backstory tools", "backstory tools --cost"),
        "bridge": (),
        "serve": ("backstory serve", "backstory serve --port 8765"),
        "mcp": ("backstory mcp", "backstory mcp --http --port 8766"),
        "hook": ("""echo '{"session": "s1", "prompt": "deploy it"}' | backstory hook prompt""",),
        "completion": (),
    }
)
"""By the command's name below ``backstory``. Empty where nobody types it, or its own text shows the lines."""


def examples_of(command_path: str) -> tuple[str, ...]:
    """The examples of a command by its whole path, such as ``backstory projects merge``; the program has none."""
    return EXAMPLES.get(command_path.partition(" ")[2], ())
