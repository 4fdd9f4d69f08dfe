"""Start, watch and stop a release's engines.

A service is ready only after a real completion has come back: some engines answer /health and die on
the first request.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bundler.deploy.diagnosis import diagnose
from bundler.deploy.enginelog import first_words, last_words, telling_line
from bundler.deploy.preparing import Start, planned, prepare
from bundler.deploy.root import RELEASE_FILE, Root
from bundler.domain.facts import ReleaseRecord, ServiceState
from bundler.domain.launching import LaunchPlan
from bundler.domain.names import at_port
from bundler.domain.running import Running
from bundler.domain.seat import Seat
from bundler.domain.spec import Service
from bundler.errors import EngineError, FormatError, PortInUseError, StateError, disk_errors
from bundler.format.codec import from_bytes, to_bytes
from bundler.format.rehearsal import foreseen, instead, rehearsing
from bundler.ports import (
    ChatClient,
    ChatRequest,
    Clock,
    CommandRunner,
    EngineAdapter,
    Progress,
)

POLL_S = 0.25
FIRST_COMPLETION_TIMEOUT_S = 300.0
STOP_GRACE_S = 30.0
TELL_EVERY_S = 15.0
LOOK_EVERY_S = 1.0
LAST_WORDS = 15
LONGEST_LINE = 500


@dataclass(frozen=True)
class Launcher:
    """Everything that starting and stopping need."""

    root: Root
    engines: Mapping[str, Callable[[], EngineAdapter]]
    runner: CommandRunner
    chat: ChatClient
    clock: Clock
    progress: Progress

    def start(self, folder: Path, record: ReleaseRecord, *, timeout_s: float) -> list[ServiceState]:
        """Start every service of a release and wait until each has answered.

        A service that an interrupted `start` left behind unready is waited for, not started again.

        Raises:
            StateError: one runs already.
            PortInUseError: something else listens on its port.
            EngineError: one died or did not get ready; all that are not ready are stopped.
        """
        if not record.services:
            raise StateError(
                f"{record.bundle_id}: holds an engine and no model, so that there is nothing to start",
                hint="Import and install a bundle with a model.",
            )
        with self.root.alone():
            states = self._spawn_all(folder, record)
        if rehearsing():
            return states
        try:
            engine = self.engines[record.engine_name]()
            return [self._await_ready(state, engine, timeout_s) for state in states]
        except BaseException:
            for state in states:
                self.stop(state)
            raise

    def _spawn_all(self, folder: Path, record: ReleaseRecord) -> list[ServiceState]:
        left = {state.service: state for state in self.living()}
        wanted = [left.get(service.name) for service in record.services]
        for there in left.values():
            if there.node:
                raise StateError(
                    f"{there.service}: node {there.node} of several runs here; its head answers: {there.url}",
                    hint="Run `airbundle start` on the head, which waits until it has answered.",
                )
        complete = all(state and state.ready_after_s is not None for state in wanted)
        for service, state in zip(record.services, wanted, strict=True):
            adopted = state is not None and not complete and self._may_adopt(state, record)
            if not adopted:
                self.check_free(service, state)
        states: list[ServiceState] = []
        try:
            for service in record.services:
                states.append(left.get(service.name) or self._spawn(folder, record, service))
        except BaseException:
            for state in states:
                self.stop(state)
            raise
        return states

    def check_free(self, service: Service, state: ServiceState | None) -> None:
        """Refuse to start a service twice, or where something else listens.

        Raises:
            StateError: it runs already, as `state` says.
            PortInUseError: its port is taken, or its address is none of this host.
        """
        if state is not None:
            raise StateError(
                f"{service.name} runs already (process {state.pid}, {state.url})",
                hint="Stop it first: airbundle stop --root ROOT",
            )
        gone = any(s.port == service.port and foreseen("stop", s.service) for s in self.states())
        if not gone and not self.runner.port_is_free(service.host, service.port):
            where = f"port {service.port} on {service.host}"
            raise PortInUseError(f"{service.name}: {where} is in use, or not of this host")

    def _may_adopt(self, state: ServiceState, record: ReleaseRecord) -> bool:
        return state.release_id == record.release_id and self.alive(state)

    def states(self) -> Iterator[ServiceState]:
        """Every recorded service, running or not."""
        for path in self.root.states():
            with disk_errors("reading", path):
                data = path.read_bytes()
            try:
                yield from_bytes(ServiceState, data, str(path))
            except FormatError as cause:
                raise StateError(
                    f"{cause}", hint=f"End the engine by hand if it runs, then remove {path}."
                ) from cause

    def living(self) -> list[ServiceState]:
        """Recorded services of which a process is left, of whatever release."""
        return [
            state
            for state in self.states()
            if self._members(state) and not foreseen("stop", state.service)
        ]

    def stop_all(self) -> list[str]:
        """Stop every recorded service; gives their names."""
        states = list(self.states())
        for state in states:
            self.stop(state)
        return [state.service for state in states]

    def alive(self, state: ServiceState) -> bool:
        """Whether the very process that was started still runs."""
        here = state.boot == self.runner.boot()
        return here and self.runner.start_ticks(state.pid) == state.start_ticks

    def stop(self, state: ServiceState) -> None:
        """End gently, then firmly, then make sure that nothing of the session is left."""
        if instead("stop", state.service, why=f"process {state.pid}, release {state.bundle_id}"):
            return
        for kill in (False, True):
            members = self._members(state)
            if not members:
                break
            self.runner.signal(members, kill=kill)
            self._gone_within(state, STOP_GRACE_S)
        if self._members(state):
            raise EngineError(
                f"{state.service}: process {state.pid} does not end even when killed",
                hint="It hangs in the kernel (GPU driver?); see `dmesg`.",
            )
        path = self.root.state(state.service)
        with disk_errors("removing", path):
            path.unlink(missing_ok=True)

    def _members(self, state: ServiceState) -> tuple[int, ...]:
        """What is left of the process and of the children in its session.

        The kernel gives a session's number to nobody else while one of its processes lives; after a
        reboot, or when another process has the leader's number, the record speaks of strangers.
        """
        if state.boot != self.runner.boot():
            return ()
        leader = self.runner.start_ticks(state.pid)
        if leader is not None and leader != state.start_ticks:
            return ()
        return self.runner.session(state.pid, state.start_ticks)

    def _gone_within(self, state: ServiceState, seconds: float) -> bool:
        deadline = self.clock.monotonic() + seconds
        while self._members(state):
            if self.clock.monotonic() > deadline:
                return False
            self.clock.sleep(POLL_S)
        return True

    def _spawn(self, folder: Path, record: ReleaseRecord, service: Service) -> ServiceState:
        if service.nodes > 1:
            raise StateError(
                f"{service.name}: spans {service.nodes} nodes, and `start` is for one",
                hint="Write what each of them runs: airbundle export --format multinode (or ray, k8s)"
                " --root ROOT --out DIR",
            )
        engine = self.engines[record.engine_name]()
        if rehearsing():
            # A release that would only be made now has no program to plan with yet.
            made = (folder / RELEASE_FILE).is_file()
            plan = (
                planned(self.root, folder, record, service, engine) if made else LaunchPlan(argv=())
            )
            command = f": {shlex.join(plan.argv)}" if made else ""
            instead(
                "start", service.name, why=f"release {record.bundle_id}, {service.url}{command}"
            )
            return self.state_of(Start(service, plan, {}, self.root.log(service.name)), record, 0)
        start = prepare(self.root, folder, record, service, engine)
        states: list[ServiceState] = []

        def record_it(pid: int) -> None:
            states.append(self.state_of(start, record, pid))
            self.root.write(self.root.state(service.name), to_bytes(states[0]))

        try:
            self.runner.spawn(
                start.plan.argv, env=start.env, cwd=folder, log=start.log, record=record_it
            )
        except BaseException:
            self.root.state(service.name).unlink(missing_ok=True)
            raise
        return states[0]

    def state_of(
        self, start: Start, record: ReleaseRecord, pid: int, seat: Seat | None = None
    ) -> ServiceState:
        """The record of a process that was started so."""
        service = start.service
        away = f"http://{at_port(seat.head, service.port)}" if seat and seat.rank else service.url
        return ServiceState(
            service=start.service.name,
            bundle_id=record.bundle_id,
            pid=pid,
            start_ticks=self.runner.start_ticks(pid) or 0,
            boot=self.runner.boot(),
            health_path=start.plan.health_path,
            port=start.service.port,
            url=away,
            argv=start.plan.argv,
            env=start.plan.env,
            started=self.clock.now(),
            node=seat.rank if seat else 0,
            release=record.release,
        )

    def running(self, state: ServiceState, engine: EngineAdapter) -> Running:
        """Which kernels a service says that it runs, by its log and, while it lives, its metrics."""
        metrics = self.chat.read(state.url, "/metrics") if self.alive(state) else ""
        return engine.running(first_words(self.root.log(state.service)), metrics)

    def _await_ready(
        self, state: ServiceState, engine: EngineAdapter, timeout_s: float
    ) -> ServiceState:
        began = told = self.clock.monotonic()
        if state.ready_after_s is not None:
            return state
        looked, phases = began, dict[str, float]()
        self.progress.note(f"{state.service}: process {state.pid} started, loading")
        while not self.chat.healthy(state.url, state.health_path):
            self._refuse_if_dead(state, "before it was healthy")
            now = self.clock.monotonic()
            if now - began > timeout_s:
                raise self._failure(state, f"not healthy after {timeout_s:.0f} s")
            if now - looked > LOOK_EVERY_S:
                looked = now
                told = now if self._tell_phases(state, engine, phases) else told
            if now - told > TELL_EVERY_S:
                told = now
                last = (last_words(self.root.log(state.service)) or ["nothing in its log yet"])[-1]
                note = f"{state.service}: {now - began:.0f} s, still loading: {last.strip()[:160]}"
                self.progress.note(note)
            self.clock.sleep(POLL_S)
        self._refuse_if_dead(state, "before it was healthy")
        self._tell_phases(state, engine, phases)
        self.progress.note(f"{state.service}: healthy, asking for a first completion")
        request = ChatRequest(
            model=state.service,
            prompt="ping",
            max_tokens=8,
            # Some engines load the model only now.
            timeout_s=max(FIRST_COMPLETION_TIMEOUT_S, began + timeout_s - self.clock.monotonic()),
        )
        try:
            text = self.chat.complete(state.url, request)
        except EngineError as cause:
            # The answer breaks off a moment before the process is gone.
            self._gone_within(state, 5)
            died = "and died" if not self.alive(state) else "and failed"
            raise self._failure(
                state, f"healthy on {state.health_path} {died} on the first request: {cause}"
            ) from cause
        self._refuse_if_dead(state, "right after its first completion")
        self._tell_phases(state, engine, phases)
        ready = state.model_copy(
            update={
                "ready_after_s": round(self.clock.monotonic() - began, 2),
                "first_completion": text[:200],
                "running": self.running(state, engine),
            }
        )
        self.root.write(self.root.state(state.service), to_bytes(ready))
        return ready

    def _tell_phases(
        self, state: ServiceState, engine: EngineAdapter, phases: dict[str, float]
    ) -> bool:
        """Note what the engine says that it has got through, and how long it took; each once."""
        reached = engine.running(first_words(self.root.log(state.service)), "").phases
        new = {name: took for name, took in reached.items() if name not in phases}
        phases.update(new)
        for name, took in new.items():
            self.progress.note(f"{state.service}: {name} took {took:.1f} s")
        return bool(new)

    def _refuse_if_dead(self, state: ServiceState, when: str) -> None:
        if not self.alive(state):
            raise self._failure(state, f"the engine died {when}")

    def _failure(self, state: ServiceState, what: str) -> EngineError:
        words = last_words(self.root.log(state.service))
        telling, found = telling_line(words), diagnose(words)
        said = f"; its last words: {telling}" if telling else "; it said nothing"
        hint = f"The whole log: {self.root.log(state.service)}"
        if found is not None:
            said = f": {found.meaning} (it said: {found.line})"
            hint = f"{found.fix} {hint}"
        return EngineError(
            f"{state.service}: {what}{said}",
            hint=hint,
            details=[line[:LONGEST_LINE] for line in words[-LAST_WORDS:]],
        )
