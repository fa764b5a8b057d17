"""gRPC server at one address, with an event loop in one thread and a few worker threads.

Each stream is a coroutine in the event loop, so that an idle stream costs only memory. Requests that call the device or
wait for a lock are processed by the workers, each of which processes one request at a time.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

import grpc
import grpc.aio

from p4switch.errors import UserError
from p4switch.p4runtime.errors import P4RuntimeError
from p4switch.p4runtime.messages import Message, code_pb2

_LOG = logging.getLogger(__name__)
_WORKERS = 16
_T = TypeVar("_T")
Abort = Callable[[Any, P4RuntimeError], Coroutine[Any, Any, NoReturn]]
"""Function that ends a call with an error. Its arguments are the context of the call and the error."""


class GrpcHost:
    """gRPC server for `handlers` at `address`, HOST:PORT (port 0: any free port, see `port`).

    `option` is the command-line option for the address, and `name` the name of the threads. There is
    no TLS: every client that reaches the address is served.
    """

    def __init__(self, address: str, name: str, option: str, handlers: Callable[[], grpc.GenericRpcHandler]) -> None:
        self._address = address
        self._option = option
        self._handlers = handlers
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._workers = ThreadPoolExecutor(_WORKERS, f"{name} worker")
        self._server: grpc.aio.Server | None = None
        self.port = 0

    def start(self) -> None:
        """Start the server.

        Raises UserError if the server cannot listen on the address.
        """
        self._thread.start()
        self._wait_for(self._start())

    def stop(self, grace_s: float = 0.5) -> None:
        """Stop the server.

        Parameters
        ----------
        grace_s
            Seconds after which unfinished calls are cancelled.
        """
        if self._thread.is_alive():
            self._wait_for(self._end(grace_s))
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()
        self._workers.shutdown(wait=False, cancel_futures=True)

    async def work(self, function: Callable[..., _T], *arguments: object) -> _T:
        """Have a worker call a function, and return the result."""
        return await self._loop.run_in_executor(self._workers, function, *arguments)

    def unary(
        self, method: Callable[[Message, Any], Message], request: Any, response: Any, abort: Abort
    ) -> grpc.RpcMethodHandler[Any, Any]:
        """Return the handler of a unary call that a worker answers. An exception ends the call by `abort`."""

        async def call(message: Message, context: Any) -> Message:
            try:
                return await self.work(method, message, context)
            except P4RuntimeError as error:
                await abort(context, error)
            except Exception as error:
                _LOG.exception("an error of the server's own")
                await abort(context, P4RuntimeError(code_pb2.INTERNAL, f"{type(error).__name__}: {error}"))

        return grpc.unary_unary_rpc_method_handler(call, request.FromString, response.SerializeToString)

    def submit(self, function: Callable[..., object], *arguments: object) -> None:
        """Have a worker call a function, unless the server has been stopped."""
        with suppress(RuntimeError):
            self._workers.submit(function, *arguments)

    def call_soon(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function in the event loop, unless the loop is closed."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)

    def _wait_for(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine in the event loop, wait in another thread, and return the result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _start(self) -> None:
        server = grpc.aio.server(options=[
            ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1), ("grpc.so_reuseport", 0)
        ])
        server.add_generic_rpc_handlers((self._handlers(),))
        with suppress(RuntimeError):
            self.port = server.add_insecure_port(self._address)
        if not self.port:
            raise UserError(f"{self._option} {self._address}: cannot listen there; expected a free HOST:PORT")
        await server.start()
        self._server = server

    async def _end(self, grace_s: float) -> None:
        """End all calls, and wait for their tasks.

        gRPC's own shutdown does not wait for the tasks, and tasks that remain would print messages to stderr when they
        are destroyed.
        """
        if self._server is not None:
            await self._server.stop(grace_s)
        for end in (lambda _: None, asyncio.Task.cancel):
            serving = asyncio.all_tasks() - {asyncio.current_task()}
            for task in serving:
                end(task)
            if serving:
                await asyncio.wait(serving, timeout=grace_s)
        await self._loop.shutdown_asyncgens()
