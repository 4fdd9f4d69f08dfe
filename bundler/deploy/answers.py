"""Evidence -> answers to the five questions of an owner. Pure; no statement without its record."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from bundler.deploy import sentences
from bundler.deploy.evidence import Action, Evidence, Kept
from bundler.domain.ab import ABRecord
from bundler.domain.facts import AcceptanceRecord
from bundler.domain.questions import Answer, Answers, Lacking, Statement, Told

_QUESTIONS = {
    "users": Told(
        ko="우리 GPU에서 동시 사용자 N명일 때 p95는 얼마인가?",
        en="What is the p95 at N users on our GPU?",
    ),
    "software": Told(
        ko="장비를 바꾸지 않고 소프트웨어만으로 얼마나 개선할 수 있는가?",
        en="How much can software alone improve?",
    ),
    "compatibility": Told(
        ko="모델을 올릴 때 지금 엔진과 호환되는가?",
        en="Does the engine go with the next model?",
    ),
    "moe": Told(ko="MoE 모델을 제대로 지원하는가?", en="Are MoE models supported?"),
    "updates": Told(
        ko="폐쇄망에서는 어떤 절차로 업데이트하며 얼마나 걸리는가?",
        en="How is it updated in a closed network, and how long does that take?",
    ),
}
# Older evidence of the same sort adds nothing.
_MOST = 5
_CHANGES = ("import", "install", "upgrade", "rollback")


def answers(found: Evidence, root: Path, made: str) -> Answers:
    """All five, about the release in use; evidence of other releases is named as theirs."""
    run = next(_own(found.runs, found), None)
    facts = run.what.host if run else {}
    gpus = sorted({value for key, value in facts.items() if key.startswith("gpu ")})
    asker = _Asker(found, shlex.quote(str(root)))
    return Answers(
        bundle_id=found.current.bundle_id,
        manifest_sha256=found.current.digest,
        signed=found.current.signed,
        host="; ".join(gpus) or facts.get("processor", ""),
        made=made,
        answers=tuple(
            Answer(key=key, question=_QUESTIONS[key], statements=said, lacking=lacking)
            for key, (said, lacking) in {
                "users": asker.users(),
                "software": asker.software(),
                "compatibility": asker.compatibility(),
                "moe": asker.moe(),
                "updates": asker.updates(),
            }.items()
        ),
        unread=tuple(found.unread),
    )


_Both = tuple[tuple[Statement, ...], tuple[Lacking, ...]]


def _own(
    kept: Sequence[Kept[AcceptanceRecord]], found: Evidence
) -> Iterator[Kept[AcceptanceRecord]]:
    """Runs of the release in use that were made since it was installed."""
    yield from (
        one
        for one in kept
        if one.what.manifest_sha256 == found.current.digest
        and one.what.began >= found.release.what.installed
    )


class _Asker:
    def __init__(self, found: Evidence, root: str) -> None:
        self._found, self._root = found, root
        self._run = next(_own(found.runs, found), None)

    def _command(self, words: str) -> str:
        return f"airbundle {words} --root {self._root}"

    def users(self) -> _Both:
        """Levels of the newest run, and searches for the highest number."""
        said: list[Statement] = []
        lacking: list[Lacking] = []
        if self._run is None:
            lacking.append(
                Lacking(
                    why=Told(
                        ko="지금 릴리스를 설치한 뒤 측정한 기록이 없음",
                        en="the release in use has not been measured since it was installed",
                    ),
                    command=self._command("accept"),
                )
            )
        else:
            for level in self._run.what.levels:
                said.append(
                    Statement(
                        said=sentences.of_level(level, self._run.what), source=self._run.source
                    )
                )
                if sentences.unsound(level, self._run.what):
                    lacking.append(
                        Lacking(
                            why=Told(
                                ko=f"{level.service}, 동시 {level.concurrency}명: 측정이 유효하지 않음",
                                en=f"{level.service}, {level.concurrency} users: the measurement is not sound",
                            ),
                            command=self._command("accept"),
                        )
                    )
        searches = [
            one for one in self._found.searches
            if one.what.manifest_sha256 == self._found.current.digest
        ]  # fmt: skip
        for search in searches[:_MOST]:
            best = search.what.best
            verdict = search.what.verdict.value
            said.append(
                Statement(
                    said=Told(
                        ko=f"{search.what.service}: SLO를 지키는 최대 동시 사용자 {best or 0}명 ({verdict})",
                        en=f"{search.what.service}: at most {best or 0} users within the SLO ({verdict})",
                    ),
                    source=search.source,
                )
            )
        if not searches:
            lacking.append(
                Lacking(
                    why=Told(
                        ko="SLO를 지키는 최대 동시 사용자 수를 찾은 기록이 없음. 특정 인원만 재려면"
                        " --from N --to N을 덧붙임",
                        en="nobody searched the highest number of users within the SLO; for one number add"
                        " --from N --to N",
                    ),
                    command=self._command("accept --find-max"),
                )
            )
        return tuple(said), tuple(lacking)

    def software(self) -> _Both:
        """Comparisons of settings on this machine, and tuned tables that are missing."""
        mine = self._comparisons()
        said = [
            Statement(said=sentences.of_comparison(one.what), source=one.source)
            for one in mine[:_MOST]
        ]
        if self._run is not None:
            for state in self._run.what.services:
                if state.running is not None and state.running.moe_tuned is False:
                    said.append(
                        Statement(
                            said=Told(
                                ko=f"{state.service}: 이 GPU용으로 튜닝한 Triton 설정 없이 기본값으로 실행됨",
                                en=f"{state.service}: runs without a Triton table tuned for this GPU",
                            ),
                            source=self._run.source,
                        )
                    )
        if any(one.what.decided for one in mine):
            return tuple(said), ()
        key = "kernel=deepgemm,triton" if self._mixture() else "max_num_seqs=32,64"
        if self._found.current.manifest.engine.name == "vllm" and not self._mixture():
            key = "kv_cache_dtype=auto,fp8"
        why = Told(
            ko="결론이 난 설정 비교(A/B) 기록이 없음. 서비스를 멈춘 뒤 실행할 것",
            en="no comparison of settings was decided here; stop the services first",
        )
        lacking = Lacking(why=why, command=self._command(f"accept --ab {key}"))
        return tuple(said), (lacking,)

    def compatibility(self) -> _Both:
        """Which pairs of engine and model were installed here, and how they did."""
        said: list[Statement] = []
        judged = 0
        for kept, verified in self._found.installed[:_MOST]:
            engine = f"{kept.what.engine_name} {kept.what.engine_version}"
            models = ", ".join(
                f"{one.origin or one.name}" + (f" @ {one.revision[:12]}" if one.revision else "")
                for one in verified.manifest.models
            ) or "-"  # fmt: skip
            said.append(
                Statement(
                    said=Told(
                        ko=f"{engine}로 {models} 설치", en=f"{engine} installed with {models}"
                    ),
                    source=kept.source,
                )
            )
            run = next(
                (r for r in self._found.runs if r.what.manifest_sha256 == verified.digest), None
            )
            if run is not None:
                judged += 1
                verdict = run.what.verdict.value
                said.append(
                    Statement(
                        said=Told(
                            ko=f"{engine}, {models}: 기동 후 시험 판정 {verdict}",
                            en=f"{engine}, {models}: started and judged {verdict}",
                        ),
                        source=run.source,
                    )
                )
            said += [
                Statement(
                    said=Told(
                        ko=f"사전 점검 오류 {one.code}을(를) 공급자가 예외로 처리함: {one.reason}",
                        en=f"error {one.code} of the proof was waived by the supplier: {one.reason}",
                    ),
                    source=kept.source,
                )
                for one in verified.manifest.waived
            ]
        lacking: list[Lacking] = []
        if self._run is None:
            why = Told(
                ko="지금 엔진과 모델 조합을 시험한 기록이 없음",
                en="the engine and model in use were not judged here",
            )
            lacking.append(Lacking(why=why, command=self._command("accept")))
        if judged < 2:
            why = Told(
                ko="다른 모델이나 엔진으로 올린 기록이 없음. 다음 모델은 반입 전에 연결망에서 확인하며, 이 엔진이"
                " 모르는 모델이면 지원을 시작한 버전을 알려 줌",
                en="no other model or engine was judged here; the next one is checked before the trip, on the"
                " connected side: where this engine does not know it, the first version that does is named",
            )
            lacking.append(Lacking(why=why, command="airbundle plan SPEC.yaml"))
        return tuple(said), tuple(lacking)

    def moe(self) -> _Both:
        """Experts by the model's own files, the kernel that ran, right answers, kernels compared."""
        said = [
            Statement(
                said=Told(
                    ko=f"{one.model}: " + (f"MoE, 전문가 {one.count}개" if one.count else "MoE가 아닌 모델"),
                    en=f"{one.model}: " + (f"MoE of {one.count} experts" if one.count else "is not MoE"),
                ),
                source=one.source,
            )
            for one in self._found.experts
        ]  # fmt: skip
        if not self._mixture():
            why = Told(
                ko="지금 릴리스에는 MoE 모델이 없음. MoE 스펙은 반입 전에 확인",
                en="the release in use holds no MoE model; a spec with one is checked before the trip",
            )
            return tuple(said), (Lacking(why=why, command="airbundle plan SPEC.yaml"),)
        lacking: list[Lacking] = []
        read = False
        for state in self._run.what.services if self._run else ():
            if self._run and state.running and state.running.moe:
                read = True
                kernel = "/".join(state.running.moe)
                said.append(
                    Statement(
                        said=Told(
                            ko=f"{state.service}: 실행된 MoE 커널 {kernel}",
                            en=f"{state.service}: MoE kernel that ran: {kernel}",
                        ),
                        source=self._run.source,
                    )
                )
        if self._run:
            said += [Statement(said=sentences.of_probes(self._run.what), source=self._run.source)]
        if not read:
            why = Told(
                ko="실행된 MoE 커널이 엔진 로그에서 확인되지 않음",
                en="which MoE kernel runs is not known from the engine's log",
            )
            lacking.append(Lacking(why=why, command=self._command("accept")))
        kernels = [one for one in self._comparisons() if "kernel" in one.what.arms[0].changes]
        said += [
            Statement(said=sentences.of_comparison(one.what), source=one.source)
            for one in kernels[:_MOST]
        ]
        if self._found.current.manifest.engine.name == "vllm" and not kernels:
            why = Told(ko="MoE 커널을 비교한 기록이 없음", en="MoE kernels were not compared here")
            command = self._command("accept --ab kernel=deepgemm,triton")
            lacking.append(Lacking(why=why, command=command))
        return tuple(said), tuple(lacking)

    def updates(self) -> _Both:
        """What the audit log says of imports, installations, upgrades and returns."""
        chosen: list[Action] = []
        for what in _CHANGES:
            of = [one for one in self._found.actions if one.entry.what.split()[0] == what]
            chosen += of[: 2 if what in ("import", "install") else _MOST]
        chosen.sort(key=lambda one: one.entry.number)
        said = [Statement(said=sentences.of_action(one), source=one.source) for one in chosen]
        done = {one.entry.what for one in chosen if one.entry.outcome == "done"}
        lacking = []
        if "upgrade" not in done:
            why = Told(
                ko="업그레이드를 마친 기록이 없음. 새 번들을 들여온 뒤 실행",
                en="no upgrade was done here; import a newer bundle first",
            )
            lacking.append(Lacking(why=why, command=self._command("upgrade")))
        if "rollback" not in done:
            why = Told(
                ko="되돌리기를 해 본 기록이 없음. 점검 시간에 한 번 연습할 것",
                en="nobody has gone back here; try it once in a maintenance window",
            )
            lacking.append(Lacking(why=why, command=self._command("rollback")))
        return tuple(said), tuple(lacking)

    def _mixture(self) -> bool:
        ran = (
            bool(state.running and state.running.moe)
            for state in (self._run.what.services if self._run else ())
        )
        return any(one.count for one in self._found.experts) or any(ran)

    def _comparisons(self) -> list[Kept[ABRecord]]:
        own = self._found.current.digest
        return [one for one in self._found.comparisons if one.what.manifest_sha256 == own]
