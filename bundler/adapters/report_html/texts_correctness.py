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
# Sentence -> Korean; both regular expressions' sides as in `texts`.
PATTERNS: tuple[tuple[str, str], ...] = (
    *((f"{en}, {phase}", f"{ko}({_PHASES[phase]})") for en, ko in _WHAT.items() for phase in _PHASES),
    (r"not offered by this engine: (?P<error>.*)", r"이 엔진이 제공하지 않음: \g<error>"),
    (r"no golden record of this model here: the answers under load are compared with these",
     "이 모델의 기준 기록이 없음: 부하 중 응답을 이 응답과 비교"),
    (r"no golden record of this model here, and one request at a time: nothing to compare with",
     "이 모델의 기준 기록이 없고 한 번에 한 요청만 처리하므로 비교할 대상이 없음"),
    (r"as unlikely as random words: is the model trained, and are its weights whole\?",
     "무작위 단어 수준의 우도: 학습된 모델인지, 가중치가 온전한지 확인할 것"),
    (r"with (?:idle|the golden record): (\d+) prompts, (\d+) tokens alike, mean difference (\S+) nats",
     r"질문 \1개, 일치한 토큰 \2개, 로그확률 평균 차이 \3 nat"),
    (r"(\d+) of (\d+) answers", r"응답 \2건 중 \1건 정상"),
    (r"(\d+) of (\d+) found in (\d+) tokens", r"\3토큰 문맥에서 \2건 중 \1건 찾음"),
    (r"the code was not found", "숨긴 코드를 찾지 못함"),
    (r"the context allows no (\d+) tokens", r"문맥 길이가 \1토큰에 못 미침"),
    (r"no tool was called", "도구를 호출하지 않음"),
    (r"the arguments are not those of the question", "인자가 질문과 다름"),
    (r"only (\d+) Hangul syllables", r"한글이 \1자뿐임"),
    (r"(\d+) of (\d+) letters are Hangul", r"글자 \2자 중 한글이 \1자"),
    (r"(\d+) answers kept", r"응답 \1건 보관"),
    (r"nothing ran beside it: (?P<error>.*)", r"함께 실행된 요청이 없음: \g<error>"),
    (r"(?P<piece>'.*') repeats (\d+) times", r"\g<piece>이(가) \2번 반복됨"),
    (r"it ends in a loop of (.*)", r"끝부분이 \1의 반복임"),
)  # fmt: skip
