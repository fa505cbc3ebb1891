"""om_status: how far observing a session has come, under the names that opencode-observational-memory uses."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from backstory.config import Settings
from backstory.domain.interchange import UNVOUCHED_NOTE
from backstory.entrypoints.tools.om_observations import SessionArguments, observation_lookup, quoted_lines
from backstory.entrypoints.tools.tool import Answer, Call, Effect, Tool
from backstory.services.observation import OBSERVE, REFLECT, Observing
from backstory.services.observation_lookup import ObservationStatus


async def om_status(arguments: SessionArguments, call: Call) -> Answer:
    """Everything there is to tell, as JSON; null stands for what is not known."""
    lookup = observation_lookup(call)
    status = await lookup.status(call.viewer, arguments.session_id)
    told = {
        "sessionId": status.session,
        **_places(status, call.app.settings),
        **_thresholds(status, lookup.observing),
        **_progress(status),
        **_last_cycle(status),
        **({"note": UNVOUCHED_NOTE} if status.log.is_unvouched else {}),
    }
    return Answer(text=json.dumps(told, indent=2, ensure_ascii=False), title="observation status")


def _places(status: ObservationStatus, settings: Settings) -> dict[str, object]:
    file = settings.database_file
    return {
        "stateDir": None if file is None else str(file.parent),
        "statePath": None if file is None else str(file),
        "stateFileExists": status.state is not None,
    }


def _thresholds(status: ObservationStatus, observing: Observing) -> dict[str, object]:
    return {
        "observationTokens": status.log_tokens,
        "observationThreshold": observing.policy.message_tokens,
        "observationModel": observing.model_name,
        "reflectionThreshold": observing.policy.observation_tokens,
        "reflectionModel": observing.reflector_name,
        "observationsPresent": bool(status.log.text),
    }


def _progress(status: ObservationStatus) -> dict[str, object]:
    return {
        "lastObservedMessageId": status.last_message,
        "lastObservedMessageAt": _moment(status.last_message_at),
        "cursorModeForCurrentWindow": status.mode.value,
        "unobservedMessages": status.unobserved.messages,
        "unobservedMessageTokens": status.unobserved.tokens,
    }


def _last_cycle(status: ObservationStatus) -> dict[str, object]:
    """Requests replace messages anew each time here, so what the last one carried is told of now."""
    state = status.state
    cycle = None if state is None else state.last_cycle
    return {
        "lastCycleAt": None if state is None else _moment(state.last_cycle_at),
        "lastCycleReason": cycle,
        "lastCursorMode": None if state is None else status.mode.value,
        "observeTriggered": None if cycle is None else cycle == OBSERVE,
        "reflectTriggered": None if cycle is None else cycle == REFLECT,
        "tailMessagesBeforePrune": status.whole.messages,
        "tailTokensBeforePrune": status.whole.tokens,
        "tailMessagesAfterPrune": status.verbatim.messages,
        "tailTokensAfterPrune": status.verbatim.tokens,
        "prunedMessagesCount": status.whole.messages - status.verbatim.messages,
        "currentTask": _quoted(status.log.current_task),
        "suggestedResponse": _quoted(status.log.suggested_response),
        "updatedAt": None if state is None else _moment(state.updated_at),
    }


def _moment(moment: datetime | None) -> str | None:
    """As JavaScript writes it: ``2026-03-02T09:47:00.000Z``."""
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _quoted(text: str | None) -> str | None:
    return None if text is None else quoted_lines(text)


OM_STATUS = Tool(
    name="om_status",
    description=(
        "Tell how far observing a session has come: its thresholds, how much is noted and how much is not yet, what"
        " was replaced in requests, the last run. For questions about the memory itself; what was noted is shown by"
        " om_observations."
    ),
    arguments=SessionArguments,
    handler=om_status,
    effect=Effect.READS,
)
