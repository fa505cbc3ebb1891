"""From an exception to the failure that is told: ours by the table, those of the command line, and the unexpected."""

from __future__ import annotations

import sys
import traceback

import click

from backstory.entrypoints.cli.output import ResultLost, for_terminal
from backstory.entrypoints.errors import UNEXPECTED, USAGE, Failure, failure_of
from backstory.errors import BackstoryError


def explain(error: Exception, *, verbose: bool) -> Failure:
    """What is told about ``error``. With ``verbose``, where it comes from is written to standard error too."""
    if verbose:
        traceback.print_exception(error, file=sys.stderr)
    match error:
        case BackstoryError():
            return failure_of(error)
        case click.UsageError():
            return _usage(error)
        case click.ClickException():
            return Failure(type="InputError", message=error.format_message(), exit_code=USAGE)
        case ResultLost():
            message = f"standard output did not take the result ({error}); what the command had to do is done"
            return Failure(type="ResultLost", message=message, exit_code=UNEXPECTED)
        case OSError():
            return Failure(type="OSError", message=_sentence(error), exit_code=UNEXPECTED)
        case _:
            message = f"unexpected {type(error).__name__}: {error}"
            hint = None if verbose else "this is a bug; --verbose shows where, please report it"
            return Failure(type="Unexpected", message=message, exit_code=UNEXPECTED, hint=hint)


def tell(failure: Failure, *, as_json: bool) -> None:
    """Write a failure to standard error."""
    if as_json:
        import json

        sys.stderr.write(json.dumps({"error": failure.as_json()}) + "\n")
    else:
        hint = f"\n  {failure.hint}" if failure.hint else ""
        sys.stderr.write(f"backstory: {for_terminal(failure.message)}{hint}\n")
    sys.stderr.flush()


def _usage(error: click.UsageError) -> Failure:
    param = error.param if isinstance(error, click.BadParameter) else None
    where = error.ctx.command_path if error.ctx is not None else "backstory"
    message = " ".join(error.format_message().split()).rstrip(".,")
    return Failure(
        type="UsageError",
        message=message[:1].lower() + message[1:],
        exit_code=USAGE,
        field=param.opts[0].lstrip("-") if param is not None else None,
        hint=f"`{where} --help` shows how it is used",
    )


def _sentence(error: OSError) -> str:
    name = f"{error.filename}: " if error.filename is not None else ""
    return f"{name}{error.strerror or error}"
