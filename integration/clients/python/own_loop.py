"""For clients of asyncio: the scenarios are plain functions."""

import asyncio
import threading

import scenarios


class Loop:
    """An event loop of its own, in a thread of its own."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def do(self, call):
        async def run():
            return await call()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(scenarios.LONG)

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
