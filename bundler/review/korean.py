"""Findings in Korean: the inventory says them in English, once; a reviewer here reads them in Korean."""

from __future__ import annotations

import re

_PATTERNS = (
    (r"calls (.+) when it is loaded", r"불러올 때 \1 호출"),
    (r"fetches (.+) when it is loaded", r"불러올 때 \1 참조"),
    (r"a pickle of numbers and tensors alone", "수치와 텐서만 담긴 pickle"),
    (r"runs at every start of this Python: (.+)", r"이 파이썬을 시작할 때마다 실행됨: \1"),
    (r"runs at every start of this Python", "이 파이썬을 시작할 때마다 실행됨"),
    (
        r"machine code for Linux, loaded by the package or run as a program",
        "리눅스용 기계어(공유 라이브러리 또는 실행 파일)",
    ),
    (r"machine code for Windows; does not run on the target", "윈도용 기계어. 대상 서버에서 실행되지 않음"),
    (
        r"machine code for macOS or Java; does not run on the target",
        "macOS 또는 Java용 코드. 대상 서버에서 실행되지 않음",
    ),
    (r"a program that is put on the environment's PATH", "가상 환경의 PATH에 설치되는 실행 파일"),
    (r"loaded by the engine by itself: (.+)", r"엔진이 스스로 불러오는 플러그인: \1"),
    (r"programs: (.+)", r"실행 명령: \1"),
    (r"machine code among the model's files", "모델 파일에 섞인 기계어"),
    (r"a script; nothing here calls it", "스크립트. 호출하는 곳은 없음"),
    (r"a script", "스크립트"),
    (r"a program or shared library for Linux", "리눅스용 실행 파일 또는 공유 라이브러리"),
    (r"an archive; its contents were not looked into", "압축 파일. 내용은 검사하지 않음"),
    (r"an archive; not looked into", "압축 파일. 내용은 검사하지 않음"),
    (
        r"a format with room for code \(layers, graphs\); not looked into",
        "코드를 담을 수 있는 형식(레이어, 그래프). 내용은 검사하지 않음",
    ),
    (
        r"one Python file of the standard library alone; starts the tool on a bare host when a person"
        r" calls it",
        "표준 라이브러리만 쓰는 파이썬 파일 하나. 담당자가 실행하면 도구를 기동함",
    ),
    (
        r"chat template: a Jinja program that the engine runs for each request",
        "대화 템플릿. 엔진이 요청마다 실행하는 Jinja 프로그램",
    ),
    (r"auto_map names code of another repository; (.+)", r"auto_map이 다른 저장소의 코드를 지정함. \1"),
    (
        r"auto_map names this file, which is not in the bundle; (.+)",
        r"auto_map이 지정하지만 번들에 없는 파일. \1",
    ),
    (r"Python that auto_map names; (.+)", r"auto_map이 지정한 파이썬 코드. \1"),
    (
        r"Python among the model's files; auto_map does not name it",
        "모델에 포함된 파이썬 코드. auto_map이 지정하지 않음",
    ),
    (
        r"a service is started with --trust-remote-code, so that it runs",
        "서비스가 --trust-remote-code로 기동되므로 실행됨",
    ),
    (
        r"runs only with --trust-remote-code, which no service here has",
        "--trust-remote-code를 줄 때만 실행되며, 이 번들의 서비스에는 없음",
    ),
    (r"was not looked into: (.+)", r"검사하지 못함: \1"),
    (r"is no sound wheel: (.+)", r"정상적인 wheel이 아님: \1"),
    (r"has no METADATA that names it", "이름을 밝히는 METADATA가 없음"),
    (r"cannot be read: (.+)", r"읽을 수 없음: \1"),
    (r"its header was not read: it (.+)", r"헤더를 읽지 못함: \1"),
    (r"the card's head was not read: (.+)", r"모델 카드의 머리말을 읽지 못함: \1"),
    (r"ends as no pickle does: (.+)", r"pickle 형식이 도중에 깨짐: \1"),
    (r"is over (\d+) bytes; what lies behind was not read", r"\1바이트를 넘어 그 뒤는 검사하지 못함"),
    (r"walks to (\S+) \(line (\d+)\)", r"\1 속성으로 접근(\2행)"),
    (r"reads an attribute by \|attr \(line (\d+)\)", r"|attr로 속성에 접근(\1행)"),
    (r"calls (\S+), whose text can walk attributes \(line (\d+)\)", r"속성에 접근할 수 있는 \1 호출(\2행)"),
    (r"holds the text (.+) \(line (\d+)\)", r"문자열 \1 포함(\2행)"),
    (r"puts the name of what it reads together \(line (\d+)\)", r"읽을 이름을 실행 중에 조합(\1행)"),
    (r"loads another template \(line (\d+)\)", r"다른 템플릿을 불러옴(\1행)"),
    (r"picklescan names dangerous: (.+)", r"picklescan 판정: 위험(\1)"),
    (r"picklescan names suspicious: (.+)", r"picklescan 판정: 의심(\1)"),
    (r"it is not installed", "설치되어 있지 않음"),
    (r"too long for it \((\d+) opcodes\)", r"너무 길어 검사하지 못함(명령 \1개)"),
    (r"it failed: (.+)", r"검사 도중 실패함: \1"),
    (r"the log does not name it", "로그에 없음"),
    (r"over 2 GiB: ClamAV passes over such a file and says OK",
     "2 GiB 초과. ClamAV는 이런 파일을 검사하지 않고 OK로 표시함"),
    (r"the engine stopped at a limit: (.+)", r"엔진이 제한에 걸려 검사하지 못함: \1"),
    (r"the log says: (.+)", r"로그 내용: \1"),
    (r"the log has no summary: it may be cut", "로그에 요약(SCAN SUMMARY)이 없습니다. 잘렸을 수 있습니다."),
    (r"the summary counts (\d+) infected files, the log names fewer",
     r"요약의 감염 파일 수(\1)보다 로그에 적힌 것이 적습니다."),
    (r"the summary counts (\d+) errors", r"요약에 오류가 \1건 있습니다."),
    (r"two engines: (.+)", r"엔진 버전이 서로 다릅니다: \1"),
    (r"the engine scanned (.+) of files with (.+): it passes over what is beyond its limits and says OK",
     r"엔진이 실제로 검사한 양(\1)이 파일 크기(\2)보다 적습니다. 제한을 넘는 파일은 검사하지 않고 OK로 표시합니다."),
    (r"does not parse: (.+)", r"구문을 해석할 수 없음: \1"),
)  # fmt: skip
_COMPILED = [(re.compile(pattern), text) for pattern, text in _PATTERNS]


def korean(text: str) -> str:
    """A finding's words in Korean; what no pattern knows stays as it is."""
    found = _whole(text)
    if found is not None:
        return found
    if text.startswith("chat template "):
        parts = text.removeprefix("chat template ").split("; ")
        return "대화 템플릿: " + ", ".join(
            _whole(part.removeprefix("it ")) or part for part in parts
        )
    if "; it " in text:
        first, _, rest = text.partition("; it ")
        return f"{korean(first)}. {korean(rest)}"
    return text


def _whole(text: str) -> str | None:
    for pattern, words in _COMPILED:
        match = pattern.fullmatch(text)
        if match is not None:
            said = match.expand(words)
            # What a pattern leaves over may be a sentence of its own.
            rest = match.groups()[-1] if match.groups() else None
            inner = _whole(rest) if rest and rest != text else None
            return said if rest is None or inner is None else said.replace(rest, inner)
    return None
