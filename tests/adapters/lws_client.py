#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR 0BSD
"""Clients of examples/adapters/lws.c, by python3-websockets.

    tests/adapters/lws_client.py PORT PID     PID: of the server, which is ended by a signal
"""
import asyncio
import os
import signal
import socket
import sys
import time

import websockets

PORT, PID = int(sys.argv[1]), int(sys.argv[2])


def connect():
    return websockets.connect(f"ws://127.0.0.1:{PORT}/", subprotocols=["sleep"])


async def in_order(n):
    async with connect() as ws:
        for i in range(n):
            await ws.send(str(i))
        for i in range(n):
            assert await ws.recv() == f"slept {i} ms"


async def clients_sleep_side_by_side():
    start = time.monotonic()
    async def one():
        async with connect() as ws:
            await ws.send("200")
            assert await ws.recv() == "slept 200 ms"
    await asyncio.gather(*(one() for _ in range(50)))
    assert time.monotonic() - start < 5  # one by one they would take 10 s


async def client_that_sends_ahead_is_held_back():
    await in_order(40)  # ten times the queue of the server


async def client_that_leaves_ends_its_task():  # as glib.sh finds out at the end
    for _ in range(50):
        ws = await connect()
        await ws.send("60000")
        await ws.close()
        raw = socket.create_connection(("127.0.0.1", PORT))
        raw.close()


async def nonsense_closes_the_connection():
    for text in ("123456789", ""):
        async with connect() as ws:
            await ws.send(text)
            try:
                await ws.recv()
                raise AssertionError("an answer")
            except websockets.ConnectionClosed:
                pass


async def signal_tells_the_clients():
    idle, busy = await connect(), await connect()
    for ws in (idle, busy):  # after an answer the server has seen that all others have left
        await ws.send("0")
        assert await ws.recv() == "slept 0 ms"
    await busy.send("60000")
    os.kill(PID, signal.SIGTERM)
    assert await idle.recv() == "the server ends"
    assert await busy.recv() == "the server ends"
    for ws in (idle, busy):
        await ws.wait_closed()


async def main():
    for test in (clients_sleep_side_by_side, client_that_sends_ahead_is_held_back,
                 client_that_leaves_ends_its_task, nonsense_closes_the_connection,
                 signal_tells_the_clients):
        await asyncio.wait_for(test(), 30)
        print("  ok    " + test.__name__)


asyncio.run(main())
