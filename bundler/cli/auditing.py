"""Commands that the audit log of a root records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bundler import wiring
from bundler.cli.streams import ERR
from bundler.errors import BundlerError

if TYPE_CHECKING:
    from bundler.deploy.audit import Action, AuditLog
    from bundler.deploy.root import Root
    from bundler.domain.audit import Outcome


@contextmanager
def recorded(root: Root, what: str, *, changes: bool = True) -> Iterator[Action]:
    """Record that a command began and how it ended.

    Args:
        root: what it works on. Where none is yet, only the end is recorded, and nothing when none was made.
        what: the command.
        changes: whether it changes what is installed: then it does not begin when that cannot be recorded.
            What serves is started and stopped all the same, with a warning.

    Raises:
        IntegrityError, SpaceError, FileAccessError: it cannot be recorded.
    """
    from bundler.deploy.audit import Action
    from bundler.format.rehearsal import instead

    action, log, began = Action(what), wiring.audit_log(root), None
    if instead("append to", root.audit, why=what):
        yield action
        return
    recordable = True
    if root.path.is_dir():
        try:
            began = log.add(action, "begun")
        except BundlerError as error:
            if changes:
                raise
            _warn(f"{what}: {error}")
            recordable = False
    try:
        yield action
    except BaseException as error:
        why = str(error) or type(error).__name__
        action.detail = f"{action.detail}: {why}" if action.detail else why
        stopped = isinstance(error, (KeyboardInterrupt, SystemExit))
        if recordable:
            _end(log, action, "interrupted" if stopped else "failed", began)
        raise
    if recordable:
        _end(log, action, "done", began)


def _end(log: AuditLog, action: Action, outcome: Outcome, began: int | None) -> None:
    """What is done is done, and an error matters more than that it could not be recorded."""
    if not log.root.path.is_dir():
        return
    try:
        log.add(action, outcome, began)
    except BundlerError as error:
        _warn(f"{action.what} {outcome}: {error}")


def _warn(line: str) -> None:
    ERR.line(f"warning: not recorded in the audit log: {line}", style="yellow")
