"""A TCP proxy of the database that can delay packets, cut connections or drop all data."""

from __future__ import annotations

import asyncio
import contextlib
import threading

CHUNK = 65_536


class Proxy:
    """Runs in its own thread; clients connect to `address`."""

    def __init__(self, host: str, port: int) -> None:
        self._upstream = (host, port)
        self.delay = 0.0
        self.refusing = False
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()
        self._ready.wait(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        running = asyncio.all_tasks(self._loop)
        for task in running:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*running, return_exceptions=True))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            writer.transport.abort()
            return
        try:
            up_reader, up_writer = await asyncio.open_connection(*self._upstream)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, up_writer}
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, up_writer))
                group.create_task(self._pump(up_reader, writer))
        except* (OSError, asyncio.CancelledError):
            pass  # end of a connection or of the proxy
        finally:
            self._writers -= {writer, up_writer}
            writer.transport.abort()
            up_writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK):
            if self.delay:
                await asyncio.sleep(self.delay)
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError

    def cut(self) -> None:
        """Reset every connection."""

        def abort() -> None:
            for writer in list(self._writers):
                with contextlib.suppress(OSError):
                    writer.transport.abort()

        self._loop.call_soon_threadsafe(abort)

    def close(self) -> None:
        """Stop; connections are reset."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
