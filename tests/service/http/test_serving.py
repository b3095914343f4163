"""What a server does besides answering: its socket, and its garbage."""

import asyncio
import gc
import socket

from spillover.http.app import GENERATIONS, collect_rarely, listening_socket
from tests.waiting import HANG


def test_answers_are_not_held_back_by_nagles_algorithm() -> None:
    """An answer is sent in parts; the second would wait for the acknowledgement of the first, 40 ms on many systems."""
    found: asyncio.Future[int]

    class Accepted(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted = transport.get_extra_info("socket")
            found.set_result(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            transport.close()

    async def connected() -> int:
        nonlocal found
        found = asyncio.get_running_loop().create_future()
        listening = listening_socket("127.0.0.1", 0)
        async with await asyncio.get_running_loop().create_server(Accepted, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            option = await asyncio.wait_for(found, HANG)
            writer.close()
            await writer.wait_closed()
        return option

    assert asyncio.run(connected()) != 0


def test_garbage_is_looked_for_rarely_and_cycles_are_still_found() -> None:
    before = gc.get_threshold()
    try:
        collect_rarely()
        assert gc.get_threshold() == GENERATIONS
        assert gc.get_freeze_count() > 0
        first: list[object] = []
        first.append(first)
        del first
        assert gc.isenabled()
        assert gc.collect() > 0
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
