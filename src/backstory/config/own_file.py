"""Setting or removing one setting in the user's own file, which people write by hand as well."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from backstory.adapters.whole_file import place
from backstory.config.edit import value_in, with_setting, without_setting
from backstory.config.files import Unreadable, parse_document, read_bounded
from backstory.config.layers import exposed_secret
from backstory.config.locations import CONFIG, user_config_file
from backstory.config.names import unknown
from backstory.config.options import Value
from backstory.config.settings import groups, options
from backstory.config.values import may_hold_a_secret, parse, printable, shown
from backstory.errors import ConfigError

_NEW_FILE_MODE = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One setting of the user's file: what the file says of it now and would say. None is nothing."""

    name: str
    file: Path
    before: object
    after: Value
    old_bytes: bytes | None
    new_bytes: bytes

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        return self.new_bytes != (self.old_bytes or b"")


def plan_set(env: Mapping[str, str], name: str, raw: str) -> Edit:
    """What setting ``name`` to ``raw`` would do. Raises ConfigError naming the setting, the value and what is allowed,
    for an unknown name, for a secret, and for a file that cannot be changed safely."""
    source = f"config set {printable(name[:200])}"
    table = {option.name: option for option in options()}
    if name not in table:
        raise unknown(name, table, source=source)
    option = table[name]
    if option.secret:
        raise exposed_secret(option, written=name, source=source, where="in a file")
    value = parse(option, raw, written=name, source=source, text=True)
    return _planned(env, name, value if isinstance(value, bool | int) else str(value))


def plan_unset(env: Mapping[str, str], name: str) -> Edit:
    """What removing ``name`` would do. A name that no setting has is removed too where the file holds it, since that
    is what mends a misspelt one. Raises ConfigError as above."""
    edit = _planned(env, name, None)
    if edit.before is None and name not in (known := [option.name for option in options()]):
        raise unknown(name, known, source=f"config unset {printable(name[:200])}")
    return edit


def apply(edit: Edit) -> None:
    """Write the file in one step, its folder too if need be; a link is followed, and its mode stays.

    Raises ConfigError where it cannot be written, and where somebody else changed it since it was read.
    """
    target = Path(os.path.realpath(edit.file))

    def check() -> None:
        if read_bounded(target) != edit.old_bytes:
            raise _unfit(edit.file, "was changed by somebody else in this moment; nothing was written, try again")

    try:
        mode = target.stat().st_mode & 0o777 if edit.old_bytes is not None else _NEW_FILE_MODE
        if edit.old_bytes is not None and not os.access(target, os.W_OK):  # a file put in its place would not ask
            raise _unfit(edit.file, "may not be written")
        place(target, edit.new_bytes, mode=mode, check=check)
    except Unreadable as error:
        raise _unfit(edit.file, f"was changed by somebody else in this moment: it {error}") from None
    except OSError as error:
        raise _unfit(edit.file, f"cannot be written ({error.strerror or error})") from error


def way_back(edit: Edit) -> str | None:
    """What ``backstory config`` is told to have the former value again; None where no setting takes that."""
    if edit.before is None:
        return f"unset {edit.name}"
    if not _is_taken(edit.name, edit.before):
        return None
    plain = str(edit.before).lower() if isinstance(edit.before, bool) else str(edit.before)
    return f"set {edit.name} {shlex.quote(plain)}"


def told(name: str, value: object) -> str | None:
    """A value of the file as people may see it; None where it says nothing. A secret in it is not repeated."""
    if value is None:
        return None
    if not _is_taken(name, value) and _may_be_secret(name, value):
        return "hidden"
    return shown(value)[1:-1] if isinstance(value, str) else shown(value)


def _is_taken(name: str, value: object) -> bool:
    """Whether the setting takes the value from a file."""
    option = next((item for item in options() if item.name == name), None)
    if option is None or option.secret:
        return False
    try:
        parse(option, value, written=name, source="", text=False)
    except ConfigError:
        return False
    return True


def _may_be_secret(name: str, value: object) -> bool:
    """Whether what no setting takes may be a secret all the same, such as a key below a misspelt name."""
    from backstory.domain.redaction import redact_secrets  # only where the file is wrong

    key = name.rpartition(".")[2]
    if any(item.name.endswith(f".{key}") for item in options() if item.secret):
        return True
    if any(may_hold_a_secret(item, value) for item in options() if item.name == name):
        return True
    return bool(redact_secrets(f"{key} = {value}").secrets)


def _planned(env: Mapping[str, str], name: str, value: Value) -> Edit:
    file = user_config_file(env)
    if str(file) == os.devnull:
        raise ConfigError(
            f"{CONFIG} says that there is no file to write to", option=CONFIG, source=f"environment {CONFIG}"
        )
    try:
        old_bytes = read_bounded(file)
        before = value_in(parse_document(old_bytes or b""), name)
        text = (old_bytes or b"").decode()
        edited = text if _same(before, value) else _edited(text, name, value)
    except Unreadable as error:
        raise _unfit(file, str(error)) from None
    return Edit(name=name, file=file, before=before, after=value, old_bytes=old_bytes, new_bytes=edited.encode())


def _edited(text: str, name: str, value: Value) -> str:
    if value is None:
        return without_setting(text, name, is_group_known=name.partition(".")[0] in groups())
    return with_setting(text, name, value)


def _same(before: object, value: Value) -> bool:
    return type(before) is type(value) and before == value


def _unfit(file: Path, reason: str) -> ConfigError:
    source = f"user file {printable(str(file))}"
    return ConfigError(f"{source} {printable(reason)}", option=CONFIG, source=source)
