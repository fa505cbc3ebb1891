"""Blocking drivers: in place without an event loop, in a worker thread with one."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from backstory.adapters.blocking import OneAtATime, aside, run_blocking, running_loop
from tests.no_loop import drive


def test_without_a_loop_the_call_runs_in_place() -> None:
    assert drive(run_blocking(threading.get_ident)) == threading.get_ident()
    assert drive(OneAtATime().run(threading.get_ident)) == threading.get_ident()


def test_under_a_loop_the_call_runs_in_another_thread() -> None:
    async def main() -> tuple[int, int]:
        return await run_blocking(threading.get_ident), await OneAtATime().run(threading.get_ident)

    assert threading.get_ident() not in anyio.run(main)


def test_the_loop_keeps_turning_while_a_call_blocks() -> None:
    released = threading.Event()

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_blocking, lambda: released.wait(60))
            await anyio.lowlevel.checkpoint()
            released.set()

    started = time.monotonic()
    anyio.run(main)
    assert time.monotonic() - started < 50


def test_what_the_call_raises_reaches_the_caller() -> None:
    def fail() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        drive(run_blocking(fail))
    with pytest.raises(LookupError, match="gone"):
        anyio.run(run_blocking, fail)
    lane = OneAtATime()
    with pytest.raises(LookupError, match="gone"):
        anyio.run(lane.run, fail)
    assert drive(lane.run(lambda: "still usable")) == "still usable"


def test_one_at_a_time_never_overlaps_across_tasks_threads_and_loops() -> None:
    lane = OneAtATime()
    inside: list[int] = []
    worst: list[int] = []

    def step() -> None:
        inside.append(1)
        worst.append(len(inside))
        time.sleep(0.002)
        inside.pop()

    async def many() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(lane.run, step)

    threads = [threading.Thread(target=anyio.run, args=(many,)) for _ in range(2)]
    threads.append(threading.Thread(target=lambda: [drive(lane.run(step)) for _ in range(8)]))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(worst) == 24
    assert max(worst) == 1


def test_an_abandoned_call_frees_its_caller_and_still_keeps_others_out() -> None:
    lane = OneAtATime()
    begun, release = threading.Event(), threading.Event()
    order: list[str] = []

    def slow() -> None:
        begun.set()
        release.wait(60)
        order.append("slow")

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(lane.run, slow, abandon_on_cancel=True))
            assert await run_blocking(lambda: begun.wait(60))
            tasks.cancel_scope.cancel()
        order.append("caller went on")
        release.set()
        await lane.run(lambda: order.append("next"))

    anyio.run(main)
    assert order == ["caller went on", "slow", "next"]


def test_a_lane_serves_one_loop_after_another() -> None:
    lane = OneAtATime()
    assert [anyio.run(lane.run, lambda: 7) for _ in range(3)] == [7, 7, 7]


def test_there_is_no_running_loop_outside_one() -> None:
    assert running_loop() is None


def test_the_module_and_a_call_in_place_import_no_event_loop() -> None:
    code = (
        "import sys\n"
        "from backstory.adapters.blocking import run_blocking\n"
        "try: run_blocking(lambda: 1).send(None)\n"
        "except StopIteration as done: assert done.value == 1\n"
        "assert not {'asyncio', 'anyio', 'trio'} & set(sys.modules), sorted(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=240)


def test_work_aside_runs_in_one_other_thread_and_gives_back_its_result() -> None:
    lane = OneAtATime()

    async def work() -> set[int]:
        return {await run_blocking(threading.get_ident), await lane.run(threading.get_ident)}

    (thread,) = anyio.run(aside, work)
    assert thread != threading.get_ident()
    assert drive(aside(work)) == {threading.get_ident()}


@pytest.mark.parametrize("lane", [None, OneAtATime()])
def test_of_work_aside_that_nobody_waits_for_the_call_that_runs_is_the_last(lane: OneAtATime | None) -> None:
    run = run_blocking if lane is None else lane.run
    begun, release, ended = threading.Event(), threading.Event(), threading.Event()
    order: list[str] = []

    def first() -> None:
        begun.set()
        order.append("first" if release.wait(60) else "late")

    async def work() -> None:
        try:
            await run(first)
            await run(lambda: order.append("second"))
        finally:
            ended.set()

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(aside, work)
            assert await run_blocking(lambda: begun.wait(60))
            tasks.cancel_scope.cancel()
        release.set()
        await run_blocking(lambda: ended.wait(60))

    anyio.run(main)
    assert order == ["first"]
    assert drive(aside(lambda: run(lambda: "others go on"))) == "others go on"
