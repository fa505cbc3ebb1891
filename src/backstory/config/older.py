"""Environment names whose meaning hangs on others: those of older products, and which variable holds a key.

Names that simply equal one of our options are their ``aliases``.
"""

from __future__ import annotations

from collections.abc import Mapping

from backstory.config.options import Layer, Value
from backstory.config.settings import options
from backstory.config.values import SWITCH_WORDS, parse, place, shown
from backstory.errors import ConfigError

DEBUG_SWITCHES = ("OM_DEBUG", "OPENCODE_MEMORY_DEBUG")
OLLAMA_HOST, OLLAMA_PORT, OLLAMA_MODEL = "OCPG_OLLAMA_HOST", "OCPG_OLLAMA_PORT", "OCPG_EMBED_MODEL"
OPENAI_KEY = "OPENAI_API_KEY"

_OLLAMA_HOST, _OLLAMA_PORT = "localhost", "11434"
"""Where ocpg looks for Ollama when only one of the two is set."""


def older_switches(env: Mapping[str, str]) -> Layer:
    """``log.level`` = debug where an older product's debug switch is on."""
    for name in DEBUG_SWITCHES:
        switch = env.get(name, "").strip()
        source = f"environment {name}"
        if switch and switch.lower() not in SWITCH_WORDS:
            message = f"{source}: {shown(switch)} is neither on nor off; allowed: 1, 0"
            raise ConfigError(message, option=name, source=source)
        if switch and SWITCH_WORDS[switch.lower()]:
            return {"log.level": ("debug", source)}
    return {}


def dependent_values(env: Mapping[str, str], given: Layer) -> tuple[Layer, list[str]]:
    """Values that count only with a certain provider, and what to tell the user. Nothing that is given is replaced."""
    keys, warnings = _keys(env, given)
    found = {**_ollama(env, given), **keys}
    return {name: entry for name, entry in found.items() if name not in given}, warnings


def _ollama(env: Mapping[str, str], given: Layer) -> Layer:
    """ocpg's names for its embedder, once the user has chosen Ollama."""
    if given.get("embedder.provider", ("auto", ""))[0] != "ollama":
        return {}
    host, port, model = (env.get(name, "").strip() for name in (OLLAMA_HOST, OLLAMA_PORT, OLLAMA_MODEL))
    layer: Layer = {}
    if host or port:
        shown_host = f"[{host}]" if ":" in host else host or _OLLAMA_HOST
        address = f"http://{shown_host}:{port or _OLLAMA_PORT}"
        layer["embedder.base_url"] = _parsed("embedder.base_url", address, OLLAMA_PORT if port else OLLAMA_HOST)
    if model:
        layer["embedder.model"] = _parsed("embedder.model", model, OLLAMA_MODEL)
    return layer


def _keys(env: Mapping[str, str], given: Layer) -> tuple[Layer, list[str]]:
    """The keys in variables the user named; and OpenAI's own, but only for OpenAI's own endpoint."""
    layer: Layer = {}
    warnings: list[str] = []
    for group in ("embedder", "models"):
        key, key_env = f"{group}.api_key", f"{group}.api_key_env"
        variable = str(given[key_env][0]) if key_env in given else OPENAI_KEY
        if key in given or (key_env not in given and not _uses_openai_itself(group, given)):
            continue
        if env.get(variable, "").strip():
            layer[key] = _parsed(key, env[variable], variable)
        elif key_env in given:
            warnings.append(f"{place(key_env, given[key_env][1])}: the variable it names is not set")
    return layer, warnings


def _uses_openai_itself(group: str, given: Layer) -> bool:
    return given.get(f"{group}.provider", ("", ""))[0] == "openai" and f"{group}.base_url" not in given


def _parsed(option_name: str, text: str, variable: str) -> tuple[Value, str]:
    option = next(option for option in options() if option.name == option_name)
    source = f"environment {variable}"
    return parse(option, text, written=variable, source=source, text=True), source
