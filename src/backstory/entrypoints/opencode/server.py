"""The process behind the plugin: reads lines, answers requests at once, takes events in order, embeds meanwhile.

It ends when its input ends, so it never outlives OpenCode; what had arrived by then is still taken.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn

import anyio
import anyio.abc
import anyio.to_thread

from backstory.bootstrap import App
from backstory.entrypoints.background_upkeep import BackgroundUpkeep
from backstory.entrypoints.opencode import protocol
from backstory.entrypoints.opencode.hooks import Hooks
from backstory.entrypoints.opencode.questions import Questions
from backstory.entrypoints.standard_streams import lines, take_streams
from backstory.errors import BackstoryError

log = logging.getLogger(__name__)

MAX_LINE_BYTES = 64 * 1024 * 1024
THREAD_SWITCH_S = 0.0005
DRAIN_WITHIN_S = 20.0  # after the end of input: a start or a store may be so slow that prompts are still to be kept
CLOSE_WITHIN_S = 8.0  # after that: nobody kills a bridge whose host has ended, and a store may hang for ever
GIVE_WAY_WITHIN_S = 2.0  # how long an event waits for requests, so that none of them can hold up all events


@dataclass(frozen=True, slots=True)
class _Method:
    params: type[protocol.Params]
    handler: Callable[[Any], Awaitable[Any]]  # Any: each handler takes its own Params


class Bridge:
    """One conversation with one plugin over two byte streams. ``ending`` is called when the input has ended."""

    def __init__(
        self, app: App, *, source: BinaryIO, sink: BinaryIO, ending: Callable[[], None] = lambda: None
    ) -> None:
        self._app = app
        self._ending = ending
        self._source = source
        self._sink = sink
        self._questions = Questions(self._write)
        self._upkeep = BackgroundUpkeep(app, give_way=self._give_way)
        self._hooks = Hooks(app, questions=self._questions, changed=self._upkeep.wake, give_way=self._give_way)
        self._requests = {
            "hello": _Method(protocol.Hello, self._hooks.hello),
            "chat.message": _Method(protocol.ChatMessage, self._hooks.prompts.chat_message),
            "blocks": _Method(protocol.Blocks, self._hooks.requests.blocks),
            "snapshot": _Method(protocol.Snapshot, self._hooks.requests.snapshot),
            "history": _Method(protocol.History, self._hooks.histories.history),
            "compacting": _Method(protocol.Compacting, self._hooks.requests.compacting),
            "tool": _Method(protocol.ToolCall, self._hooks.tool),
        }
        self._notifications = {
            "event": _Method(protocol.Event, self._hooks.events.event),
            "dropped": _Method(protocol.Dropped, self._hooks.prompts.dropped),
            "goodbye": _Method(protocol.Goodbye, self._hooks.goodbye),
        }
        self._running = 0
        self._quiet = anyio.Event()
        self._quiet.set()

    async def run(self) -> None:
        """Serve until the input ends, finish what had arrived within ``DRAIN_WITHIN_S``, then release the store."""
        events_in, events_out = anyio.create_memory_object_stream[protocol.Incoming](math.inf)
        try:
            async with anyio.create_task_group() as background:
                background.start_soon(self._upkeep.keep_embedding)
                background.start_soon(self._hooks.prompts.unkept.keep_trying)
                background.start_soon(self._hooks.helpers.keep_sweeping)
                background.start_soon(self._hooks.histories.keep_working)
                background.start_soon(self._hooks.dreams.keep_working)
                background.start_soon(self._hooks.code_checks.keep_working)
                background.start_soon(self._upkeep.keep_expiring)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._take_events, events_out)
                    async with events_in:
                        await self._read(tasks, events_in)
                    self._ending()
                    self._questions.release()
                    deadline = tasks.cancel_scope.deadline = anyio.current_time() + DRAIN_WITHIN_S
                with anyio.CancelScope(deadline=deadline):
                    await self._hooks.prompts.unkept.finish()
                background.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self._app.close()

    async def _read(self, tasks: anyio.abc.TaskGroup, events: anyio.abc.ObjectSendStream[protocol.Incoming]) -> None:
        async for line in lines(self._source, max_bytes=MAX_LINE_BYTES):
            try:
                incoming = protocol.read_line(line)
            except protocol.Malformed as error:
                self._write(protocol.error_line(error.request_id, error.code, str(error)))
                continue
            if incoming.method is None:
                self._questions.answered(incoming)
            elif incoming.id is None:
                await events.send(incoming)
            else:
                self._running += 1
                if self._running == 1:
                    self._quiet = anyio.Event()
                tasks.start_soon(self._answer_first, incoming)

    async def _answer_first(self, incoming: protocol.Incoming) -> None:
        """Answer while events wait: somebody sits before a prompt, nobody before the archive."""
        try:
            await self._answer(incoming)
        finally:
            self._running -= 1
            if not self._running:
                self._quiet.set()

    async def _give_way(self) -> None:
        """Wait until no request is being answered, for a while."""
        with anyio.move_on_after(GIVE_WAY_WITHIN_S):
            await self._quiet.wait()

    async def _answer(self, incoming: protocol.Incoming) -> None:
        """One request. The outer loop of a job: whatever goes wrong becomes an error line, and the process lives on."""
        assert incoming.id is not None
        method = self._requests.get(incoming.method or "")
        if method is None:
            self._write(protocol.error_line(incoming.id, protocol.UNKNOWN_METHOD, f"no method {incoming.method}"))
            return
        try:
            result = await method.handler(protocol.read_params(method.params, incoming))
        except protocol.Malformed as error:
            self._write(protocol.error_line(incoming.id, error.code, str(error)))
        except BackstoryError as error:
            log.error("event=request_failed method=%s reason=%s", incoming.method, error)
            self._write(protocol.error_line(incoming.id, protocol.INTERNAL_ERROR, type(error).__name__))
        except Exception:
            log.exception("event=request_broke method=%s", incoming.method)
            self._write(protocol.error_line(incoming.id, protocol.INTERNAL_ERROR, "internal error"))
        else:
            self._write(protocol.result_line(incoming.id, result))

    async def _take_events(self, events: anyio.abc.ObjectReceiveStream[protocol.Incoming]) -> None:
        """Notifications, one after another, in the order in which they came."""
        async with events:
            async for incoming in events:
                method = self._notifications.get(incoming.method or "")
                if method is None:
                    continue
                await self._give_way()
                try:
                    await method.handler(protocol.read_params(method.params, incoming))
                except (BackstoryError, protocol.Malformed) as error:
                    log.warning("event=notification_skipped method=%s reason=%s", incoming.method, error)
                except Exception:
                    log.exception("event=notification_broke method=%s", incoming.method)

    def _write(self, line: bytes) -> None:
        try:
            self._sink.write(line)
            self._sink.flush()
        except (OSError, ValueError) as error:
            log.warning("event=plugin_gone reason=%s", error)  # the input ends next, and with it this process


def serve_stdio(app: App) -> NoReturn:
    """Serve the plugin that started this process, over its standard input and output, and end the process.

    A terminal's Ctrl-C goes to OpenCode and to this process alike; only OpenCode is asked to stop.
    """
    if not os.isatty(0):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    # a prompt passes through five threads; with Python's 5 ms a busy one holds up the others (measured: 21 to 17 ms)
    sys.setswitchinterval(THREAD_SWITCH_S)
    source, sink = take_streams()
    code = 1
    try:
        anyio.run(Bridge(app, source=source, sink=sink, ending=_end_at_last).run)
        code = 0
    except KeyboardInterrupt:
        code = 130
    except Exception:
        log.exception("event=bridge_broke")
    finally:
        # at once: an ordinary exit waits up to 2 s for the thread that loads the model, and the host waits for 1 s
        logging.shutdown()
        os._exit(code)


def _end_at_last() -> None:
    """End the process some time from now, whatever it still waits for; what it has stored is safe."""
    timer = threading.Timer(DRAIN_WITHIN_S + CLOSE_WITHIN_S, os._exit, (1,))
    timer.daemon = True
    timer.start()
