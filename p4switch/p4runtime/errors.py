"""Errors as P4Runtime reports them: a canonical code, a message, and one `p4.v1.Error` for each update of a batch."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from p4switch.p4runtime.messages import Message, code_pb2, p4runtime_pb2, status_pb2

SPACE = "p4cc"  # namespace of the numeric codes in `p4.v1.Error.code`, which are not used
_SHOWN = 3  # maximum number of a batch's errors in a message


class P4RuntimeError(Exception):
    """Refused request.

    `code` is a canonical code (google.rpc.Code). If a member of a batch failed, `errors` has a `p4.v1.Error` for each
    update or query of the batch (specification, "Error Reporting Messages"). Otherwise it is empty.
    """

    def __init__(self, code: int, message: str, errors: Sequence[Message] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.errors = list(errors)

    def __str__(self) -> str:
        failed = [f"[{i}] {code_name(e.canonical_code)}: {e.message}" for i, e in enumerate(self.errors)
                  if e.canonical_code != code_pb2.OK]
        if len(failed) > _SHOWN:
            failed[_SHOWN:] = [f"and {len(failed) - _SHOWN} more"]
        return "; ".join([f"{code_name(self.code)}: {self.message}", *failed])

    def status(self) -> Message:
        """Return the error as google.rpc.Status, which gRPC sends in `grpc-status-details-bin`."""
        status = status_pb2.Status(code=self.code, message=self.message)
        for error in self.errors:
            status.details.add().Pack(error)
        return status

    def as_error(self) -> Message:
        """Return the error as the `p4.v1.Error` of one update."""
        return p4runtime_pb2.Error(canonical_code=self.code, message=self.message, space=SPACE)


def code_name(code: int) -> str:
    """Return the name of a canonical code."""
    return str(code_pb2.Code.Name(code)) if code in code_pb2.Code.values() else str(code)


def batch_error(operation: str, errors: Sequence[Message]) -> P4RuntimeError:
    """Return the error of a batch in which at least one member failed."""
    return P4RuntimeError(code_pb2.UNKNOWN, f"{operation} failed for {sum(e.canonical_code != 0 for e in errors)} "
                          f"of {len(errors)}", errors)


def _refuse(code: int, message: str) -> NoReturn:
    raise P4RuntimeError(code, message)


def invalid(message: str) -> NoReturn:
    """Raise P4RuntimeError with the code INVALID_ARGUMENT."""
    _refuse(code_pb2.INVALID_ARGUMENT, message)


def not_found(message: str) -> NoReturn:
    """Raise P4RuntimeError with the code NOT_FOUND."""
    _refuse(code_pb2.NOT_FOUND, message)


def already_exists(message: str) -> NoReturn:
    """Raise P4RuntimeError with the code ALREADY_EXISTS."""
    _refuse(code_pb2.ALREADY_EXISTS, message)


def denied(message: str) -> NoReturn:
    """Raise P4RuntimeError with the code PERMISSION_DENIED."""
    _refuse(code_pb2.PERMISSION_DENIED, message)


def exhausted(message: str) -> NoReturn:
    """Raise P4RuntimeError with the code RESOURCE_EXHAUSTED."""
    _refuse(code_pb2.RESOURCE_EXHAUSTED, message)


def out_of_range(message: str) -> NoReturn:
    """Raise P4RuntimeError with the code OUT_OF_RANGE."""
    _refuse(code_pb2.OUT_OF_RANGE, message)


def precondition(message: str) -> NoReturn:
    """Raise P4RuntimeError with the code FAILED_PRECONDITION."""
    _refuse(code_pb2.FAILED_PRECONDITION, message)


def unimplemented(message: str) -> NoReturn:
    """Raise P4RuntimeError with the code UNIMPLEMENTED."""
    _refuse(code_pb2.UNIMPLEMENTED, message)
