"""The sections of what is still to be checked, with what, and what this pack does not say."""

from __future__ import annotations

from collections.abc import Iterator

from bundler.domain.inventory import ExecutableKind
from bundler.domain.offline import VLLM_OFFLINE
from bundler.format import layout
from bundler.review.document import (
    Cell,
    Commands,
    Items,
    Paragraph,
    Section,
    Table,
    Words,
    code,
    number,
    plain,
    same,
)
from bundler.review.subject import VULNERABILITIES, Subject


def network(subject: Subject) -> Section:
    """Ports, and what keeps the engine from calling out."""
    manifest = subject.verified.manifest
    rows = [
        (
            plain(service.name),
            code(f"{service.host}:{service.port}"),
            Cell(Words("API 키 필요", "API key asked for"), "good")
            if service.guarded
            else Cell(Words("이 서버 안에서만 접근", "this host alone")),
            code(" ".join(service.settings.args) if service.settings else "-"),
            code(_env(service.settings.env) if service.settings else "-"),
        )
        for service in manifest.services
    ]
    head = (
        Words("서비스", "Service"), Words("수신 주소", "Listens on"), Words("접근", "Access"),
        Words("추가 인자", "Arguments"), Words("환경 변수", "Environment"),
    )  # fmt: skip
    blocks: list[Table | Paragraph | Items] = [Table(head, rows)] if rows else []
    blocks.append(
        Items(
            (
                Words("설치와 기동은 인터넷에 접속하지 않습니다. 모든 패키지와 모델이 번들에 들어 있습니다.",
                      "Installing and starting ask nothing of the internet: every package and model is in the"
                      " bundle."),
                Words("반입 도구는 사용 통계를 보내지 않습니다.", "The transfer tool sends no telemetry."),
            )
        )
    )  # fmt: skip
    if manifest.engine.name == "vllm":
        off = _env(VLLM_OFFLINE)
        blocks.append(
            Paragraph(
                Words(
                    f"엔진을 기동할 때 사용 통계와 외부 조회를 끕니다: {off}",
                    f"At every start the engine's telemetry and look-ups are switched off: {off}",
                )
            )
        )
    return Section("network", Words("네트워크 동작", "Network behaviour"), blocks)


def _env(values: dict[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in sorted(values.items())) or "-"


def checks(subject: Subject) -> Section:
    """What can be checked with stock tools."""
    manifest = subject.verified.manifest
    pickles = _first_member(subject, "pickle")
    lines: list[Words] = [
        Words("# 1. 모든 파일이 목록의 SHA-256과 같은지 확인", "# 1. Every file has the SHA-256 of the list"),
        same(f"sha256sum -c {layout.CHECKSUMS}"),
        Words("# 2. 목록(manifest.json)이 공급자가 서명한 그대로인지 확인(OpenSSL 3, 공개키는 다른 경로로 수령)",
              "# 2. The manifest is what the supplier signed (OpenSSL 3; the key came by another way)"),
        same(f"openssl pkeyutl -verify -rawin -pubin -inkey KEY.pem -sigfile {layout.SIGNATURE}"
             f" -in {layout.MANIFEST}"),
        Words("# 3. manifest.json의 SHA-256이 이 자료의 값과 같은지 확인",
              "# 3. The manifest's SHA-256 is the one of this page"),
        same(f"sha256sum {layout.MANIFEST}   # {subject.verified.digest}"),
        Words("# 4. 볼륨에 든 파일 목록 보기(압축하지 않은 일반 ZIP)",
              "# 4. What is in a volume (ordinary ZIP, not compressed)"),
        *(same(f"unzip -l {volume.name}") for volume in manifest.volumes[:2]),
        Words("# 5. 실행 코드가 든 패키지 살펴보기: wheel도 ZIP입니다.", "# 5. Look into a package: a wheel is a ZIP too"),
        same("unzip -p VOLUME.zip wheels/NAME.whl > /tmp/a.whl && unzip -l /tmp/a.whl"),
        Words("# 6. 스스로 실행되는 .pth 파일 찾기", "# 6. Find .pth files that run by themselves"),
        same("unzip -p /tmp/a.whl '*.pth' | grep -n '^import'"),
        *pickles,
        Words("# 8. 이 자료를 같은 번들에서 다시 만들어 비교(같은 버전이면 바이트까지 같음)",
              "# 8. Make this pack again from the bundle and compare (the same bytes from the same version)"),
        same(f"airbundle review . --key KEY.pem --out /tmp/review{_known(subject)} && diff -r /tmp/review review"),
    ]  # fmt: skip
    return Section(
        "checks",
        Words("기본 도구로 직접 확인하기", "Check it with stock tools"),
        (Commands(lines),),
    )


def _known(subject: Subject) -> str:
    """What a database said on the day of the build cannot be asked again."""
    known = f" --known review/{VULNERABILITIES}" if subject.checked is not None else ""
    return known + (" --antivirus CLAMAV.LOG" if subject.scanned is not None else "")


def _first_member(subject: Subject, kind: ExecutableKind) -> Iterator[Words]:
    for one, found in subject.inventory.findings:
        if found.kind == kind and one.kind == "model":
            yield Words(
                "# 7. pickle의 명령을 실행하지 않고 보기",
                "# 7. Read a pickle's opcodes; nothing is run",
            )
            yield same(f"python3 -m pickletools {_quoted(found.where.rsplit('/', 1)[-1])}")
            return


def _quoted(name: str) -> str:
    return "'" + name.replace("'", "'\\''") + "'"


def volumes(subject: Subject) -> Section:
    """The files on the media."""
    manifest = subject.verified.manifest
    files = [(v.name, v.size, v.sha256) for v in manifest.volumes]
    files += [(loose.name, loose.size, loose.sha256) for loose in manifest.loose]
    return Section(
        "volumes",
        Words("매체에 담긴 파일", "Files on the media"),
        (
            Table(
                (Words("파일", "File"), Words("크기(바이트)", "Size, bytes"), Words("SHA-256", "SHA-256")),
                [(code(name), number(f"{size:,}"), code(sha)) for name, size, sha in files],
            ),
        ),
    )  # fmt: skip


def limits() -> Section:
    """What this pack does not say."""
    return Section(
        "limits",
        Words("이 자료의 한계", "What this does not say"),
        (
            Items(
                (
                    Words("기계어와 파이썬 코드가 무엇을 하는지는 분석하지 않습니다. 있는 곳과 실행되는 시점만 알립니다.",
                          "What native code and Python do is not analysed; only where it is and when it runs."),
                    Words("모델 가중치 자체의 안전성(백도어, 유해 응답)은 다루지 않습니다.",
                          "Nothing is said of the weights themselves (backdoors, harmful answers)."),
                    Words("라이선스는 표기를 그대로 옮긴 것이며 법률 검토가 아닙니다.",
                          "Licences are what is stated; this is no legal advice."),
                    Words("압축 파일(파이썬 실행 환경 등)의 내용은 검사하지 않고 '검사 불가'로 표시합니다.",
                          "Archives (such as the Python runtime) are not looked into, and are listed as such."),
                )
            ),
        ),
    )  # fmt: skip
