"""What a redline says in English, in Korean: it is compared once, and read in both."""

from __future__ import annotations

from bundler.review.document import Words

FIELDS = {
    "": Words("전체", "the whole"),
    "version": Words("버전", "version"),
    "revision": Words("리비전", "revision"),
    "licence": Words("라이선스", "licence"),
    "origin": Words("출처", "origin"),
    "size": Words("크기", "size"),
    "digest": Words("SHA-256", "SHA-256"),
    "key": Words("서명 키", "Key"),
    "sequence": Words("일련번호", "Sequence"),
}
# Parts of values, in this order.
SAID = (
    ("licence unknown", "라이선스 알 수 없음"),
    ("licence ", "라이선스 "),
    ("deny: ", "금지: "),
    ("review: ", "검토 필요: "),
    (": critical", ": 심각"),
    (": high", ": 높음"),
    (": medium", ": 보통"),
    (": low", ": 낮음"),
    (": unknown", ": 알 수 없음"),
    ("; the exception by ", "; 예외 승인자 "),
    (" expired on ", ", 만료일 "),
    ("; excepted by ", "; 예외 승인자 "),
    (" until ", ", 기한 "),
    (" bytes", "바이트"),
    (" files", "개 파일"),
    ("(alarm, ", "(위험, "),
    ("(attention, ", "(주의, "),
    ("(usual, ", "(일반, "),
)
WHY = (
    ("the older bundle's signature was not checked", "이전 번들의 서명을 확인하지 않았습니다."),
    ("licences: ", "라이선스: "),
    ("of one side only the manifest is known, which says nothing of it",
     "한쪽은 매니페스트만 있어 내용을 알 수 없습니다."),
    ("no licence policy was given", "라이선스 정책 파일을 주지 않았습니다(--policy)."),
    ("one side's settings are not known", "한쪽의 설정을 알 수 없습니다."),
    ("of either side nobody looked for any", "두 번들 모두 취약점을 점검하지 않았습니다."),
    ("of the older bundle nobody looked for any", "이전 번들의 취약점을 점검하지 않았습니다."),
    ("of the newer bundle nobody looked for any", "이번 번들의 취약점을 점검하지 않았습니다."),
    ("could not be looked up: ", "조회하지 못한 패키지: "),
    ("two databases: ", "데이터베이스가 서로 다릅니다: "),
    ("; a difference may be theirs", "; 차이가 데이터베이스에서 온 것일 수 있습니다"),
    (", and ", ", "),
    (" of ", " 기준일 "),
)  # fmt: skip
