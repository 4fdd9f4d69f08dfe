from pathlib import Path

from bundler.build.recall import Recall
from bundler.domain.needs import HostNeeds


def test_what_was_found_once_is_not_looked_for_again(tmp_path: Path) -> None:
    recall, asked = Recall(tmp_path / "facts"), []

    def look() -> HostNeeds:
        asked.append(1)
        return HostNeeds(glibc="2.31")

    assert [recall.of(HostNeeds, "k", look).glibc for _ in range(2)] == ["2.31", "2.31"]
    assert asked == [1]
    recall.of(HostNeeds, "another", look)
    assert asked == [1, 1]


def test_a_broken_record_is_made_anew(tmp_path: Path) -> None:
    recall = Recall(tmp_path)
    recall.of(HostNeeds, "k", HostNeeds)
    (kept,) = tmp_path.iterdir()
    for rubbish in (b"", b"{", b'{"glibc": 1}', b"\xff\xfe"):
        kept.write_bytes(rubbish)
        assert recall.of(HostNeeds, "k", lambda: HostNeeds(glibc="2.17")).glibc == "2.17"
    assert recall.of(HostNeeds, "k", HostNeeds).glibc == "2.17"
    assert [path.name for path in tmp_path.iterdir()] == [kept.name]
