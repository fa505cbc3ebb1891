"""What the OpenCode of a test is told: the scripted model it has, and that it is to leave the network alone."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

Json = Any  # whatever the HTTP API answers; tests reach into it at any depth

PROVIDER = "scripted"
MODEL = "main"
SMALL_MODEL = "small"
OUTPUT_LIMIT_TOKENS = 4096

OFFLINE = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_SHARE": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    "OPENCODE_DISABLE_TERMINAL_TITLE": "1",
    "OPENCODE_DISABLE_CLAUDE_CODE": "1",
    "NO_PROXY": "127.0.0.1,localhost",
    "no_proxy": "127.0.0.1,localhost",
}
NO_GIT_IDENTITY = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0"}


def seed_node_modules(folder: Path) -> None:
    """Make OpenCode believe that its npm package is installed in a configuration folder.

    OpenCode 1.18 otherwise runs npm there before it loads any plugin. It looks for ``node_modules`` and for the
    package's name at the root of the lock file; a plugin that really imports the package would not load.
    """
    (folder / "node_modules").mkdir(parents=True, exist_ok=True)
    wants = {"dependencies": {"@opencode-ai/plugin": "*"}}
    (folder / "package.json").write_text(json.dumps(wants))
    (folder / "package-lock.json").write_text(json.dumps({"lockfileVersion": 3, "packages": {"": wants}}))


def scripted_config(model_url: str, context_limit_tokens: int) -> dict[str, Json]:
    limit = {"context": context_limit_tokens, "output": OUTPUT_LIMIT_TOKENS}
    models = {name: {"name": name, "limit": limit, "tool_call": True} for name in (MODEL, SMALL_MODEL)}
    provider = {
        "npm": "@ai-sdk/openai-compatible",  # part of the binary; nothing is fetched
        "name": "Scripted",
        "options": {"baseURL": model_url, "apiKey": "none"},
        "models": models,
    }
    return {
        "autoupdate": False,
        "share": "disabled",
        "enabled_providers": [PROVIDER],
        "model": f"{PROVIDER}/{MODEL}",
        "small_model": f"{PROVIDER}/{SMALL_MODEL}",
        "provider": {PROVIDER: provider},
    }
