"""The Korean of what the correctness probes say in English; see `texts`."""

from __future__ import annotations

_WHAT = {
    "golden answers": "기준 응답 비교",
    "likelihood of fixed texts": "고정 문장 우도",
    "answers are text": "깨진 출력 여부",
    "needle in a long context": "긴 문맥 검색",
    "tool call": "도구 호출",
    "JSON schema": "JSON 스키마 준수",
    "Korean answer": "한국어 응답",
}
_PHASES = {"idle": "유휴 상태", "under load": "부하 중"}
_BESIDE = {"idle": "유휴 상태의 응답", "the golden record": "기준 기록"}
_NO_RECORD = "no golden record of this model here"


def _compared() -> tuple[tuple[str, str], ...]:
    """What a comparison says, beside either."""
    found: list[tuple[str, str]] = []
    for en, ko in _BESIDE.items():
        found += [
            (rf"with {en}: (\d+) prompts, (\d+) tokens alike, mean difference (\S+) nats",
             rf"{ko} 대비: 질문 \1개, 일치한 토큰 \2개, 로그확률 평균 차이 \3 nat"),
            (rf"{en}: (\w+): token (\d+) is (.*) here and (.*) there, and not among the (\d+) likeliest of both",
             rf"{ko}과 다름: \1의 \2번째 토큰이 여기서는 \3, 거기서는 \4이며 양쪽의 상위 \5개 후보에 함께 들지 않음"),
            (rf"{en}: log-probabilities of the same tokens differ by (\S+) nats on average, over (\S+)",
             rf"{ko}과 다름: 같은 토큰의 로그확률 차이가 평균 \1 nat으로 한계 \2 초과"),
            (rf"{en}: (\w+): (\S+) nats for each token, (\S+) there",
             rf"{ko}과 다름: \1 문장의 토큰당 우도가 여기서는 \2, 거기서는 \3 nat"),
        ]  # fmt: skip
    return tuple(found)


def _warned() -> tuple[tuple[str, str], ...]:
    """Warnings begin with the service and the probe."""
    found: list[tuple[str, str]] = []
    for en, ko in _WHAT.items():
        found += [
            (rf"(\S+): {en}: not offered by this engine: (?P<error>.*)",
             rf"\1: {ko}: 이 엔진이 제공하지 않음: \g<error>"),
            (rf"(\S+): {en}: (.*): as unlikely as random words: .*",
             rf"\1: {ko}: \2: 무작위 단어 수준의 우도. 학습된 모델인지, 가중치가 온전한지 확인할 것"),
            (rf"(\S+): {en}: {_NO_RECORD}, and one request at a time: nothing to compare with",
             rf"\1: {ko}: 이 모델의 기준 기록이 없고 한 번에 한 요청만 처리하므로 비교할 대상이 없음"),
        ]  # fmt: skip
        found += [
            (rf"(\S+): {en}, {phase}: (\d+) of (\d+) answers; (?P<error>.*) \(acceptance\.correctness does"
             r" not name (\w+), so it is not judged\)",
             rf"\1: {ko}({word}): 응답 \3건 중 \2건 정상, \g<error>"
             r" (acceptance.correctness에 \5 항목이 없어 판정하지 않음)")
            for phase, word in _PHASES.items()
        ]  # fmt: skip
    return tuple(found)


# Sentence -> Korean; both regular expressions' sides as in `texts`.
PATTERNS: tuple[tuple[str, str], ...] = (
    *((f"{en}, {phase}", f"{ko}({_PHASES[phase]})") for en, ko in _WHAT.items() for phase in _PHASES),
    *_compared(),
    *_warned(),
    (r"not offered by this engine: (?P<error>.*)", r"이 엔진이 제공하지 않음: \g<error>"),
    (rf"{_NO_RECORD}: the answers under load are compared with these",
     "이 모델의 기준 기록이 없음: 부하 중 응답을 이 응답과 비교"),
    (rf"{_NO_RECORD}, and one request at a time: nothing to compare with",
     "이 모델의 기준 기록이 없고 한 번에 한 요청만 처리하므로 비교할 대상이 없음"),
    (r"as unlikely as random words: is the model trained, and are its weights whole\?",
     "무작위 단어 수준의 우도: 학습된 모델인지, 가중치가 온전한지 확인할 것"),
    (r"(\d+) of (\d+) answers", r"응답 \2건 중 \1건 정상"),
    (r"(\d+) of (\d+) found in (\d+) tokens", r"\3토큰 문맥에서 \2건 중 \1건 찾음"),
    (r"(\d+) characters", r"\1자"),
    (r"one answer", "응답 1건"),
    (r"a call", "호출 1건"),
    (r"no call", "호출 없음"),
    (r"the code was not found", "숨긴 코드를 찾지 못함"),
    (r"the context allows no (\d+) tokens", r"문맥 길이가 \1토큰에 못 미침"),
    (r"no tool was called", "도구를 호출하지 않음"),
    (r"another tool than the given one", "주어진 것과 다른 도구를 호출함"),
    (r"the arguments are not those of the question", "인자가 질문과 다름"),
    (r"it is no JSON", "JSON이 아님"),
    (r"only (\d+) Hangul syllables", r"한글이 \1자뿐임"),
    (r"(\d+) of (\d+) letters are Hangul", r"글자 \2자 중 한글이 \1자"),
    (r"(\d+) of (\d+) letters are loose jamo", r"글자 \2자 중 \1자가 낱자모"),
    (r"(\d+) answers kept", r"응답 \1건 보관"),
    (r"nothing ran beside it: (?P<error>.*)", r"함께 실행된 요청이 없음: \g<error>"),
    (r"no answer within (\d+) tokens: it thought all the time", r"\1토큰 안에 답이 없음: 추론만 계속함"),
    (r"the JSON did not end within (\d+) tokens", r"\1토큰 안에 JSON이 끝나지 않음"),
    (r"(?P<error>'.*') repeats (\d+) times", r"\g<error> 문자가 \2번 반복됨"),
    (r"it ends in a loop of (?P<error>.*)", r"끝부분이 계속 반복됨: \g<error>"),
)  # fmt: skip
