"""A comparison as `accept --ab` would have written it, without the hours that it takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bundler.accept.ab import MARGIN, concluded
from bundler.domain.ab import ABRecord, Arm, ArmRun
from bundler.format.codec import to_bytes
from tests.fakes.site import Site

FIGURE = "all@2 output_tokens_per_s"


def comparison(
    changes: tuple[dict[str, str], dict[str, str]], factor: float = 2.0, **of: Any
) -> ABRecord:
    """B is `factor` times A, in two pairs. `of`: fields of the record, and `run`: of each arm's runs by name."""
    per_arm: dict[str, dict[str, Any]] = of.pop("run", {})
    arms = of.pop("arms", None) or (
        Arm(name="A", changes=changes[0]),
        Arm(name="B", changes=changes[1]),
    )
    runs = [
        ArmRun(
            **{
                "arm": arm,
                "pair": pair,
                "figures": {FIGURE: 100.0 * (factor if arm == "B" else 1) * (1 + pair / 500)},
                **per_arm.get(arm, {}),
            }
        )
        for arm, pair in (("A", 1), ("B", 1), ("B", 2), ("A", 2))
    ]
    fields = {
        "bundle_id": "small",
        "manifest_sha256": "0" * 64,
        "pairs": 2,
        "arms": arms,
        "began": "2026-12-01T00:00:00Z",
        "ended": "2026-12-01T01:00:00Z",
        "margin": MARGIN,
        "primary": FIGURE,
        "runs": tuple(runs),
        "comparisons": (),
        "keep": None,
        "decided": False,
        "said": "",
        **of,
    }
    return concluded(ABRecord.model_validate(fields))


def of_release(here: Site, name: str, before: str, after: str, **of: Any) -> Path:
    """A record in the root that says to keep `name`=`after`, of the release that is in use."""
    [used] = [one for one in here.json("releases")["releases"] if one["use"] == "current"]
    signed = here.root / "releases" / used["bundle_id"] / "release.json"
    record = comparison(
        ({name: before}, {name: after}),
        bundle_id=used["bundle_id"],
        release=used["release"],
        manifest_sha256=json.loads(signed.read_text())["manifest_sha256"],
        **of,
    )
    number = len(list((here.root / "acceptance").glob("*-ab")))
    path = here.root / "acceptance" / f"{number:04}-ab" / "ab.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(to_bytes(record))
    return path
