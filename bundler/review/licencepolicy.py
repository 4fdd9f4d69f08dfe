"""Which licences a site takes: a file with `allow`, `deny` and `review` by SPDX identifier.

allow: [MIT, Apache-2.0, "BSD-*"]
deny: ["GPL-*", "AGPL-*"]
review: ["LicenseRef-*"]
otherwise: review        # of licences that no list names
unknown: review          # of components without a known licence
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError

from bundler.domain.inventory import Component
from bundler.domain.record import Record
from bundler.errors import SpecError, disk_errors
from bundler.format.untrusted import shown
from bundler.review.licences import licensing

Judgement = Literal["allow", "review", "deny"]
_ORDER: tuple[Judgement, ...] = ("allow", "review", "deny")
_MAX_POLICY = 2**20


class LicencePolicy(Record):
    """Lists of SPDX identifiers; `*` stands for any letters.

    A pattern may name an exception too: `GPL-2.0-only WITH Classpath-exception-2.0`.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    review: tuple[str, ...] = ()
    otherwise: Judgement = Field("review", description="Of licences that no list names.")
    unknown: Judgement = Field("review", description="Of components whose licence is unknown.")

    def judge(self, component: Component) -> Judgement:
        """Of a choice (OR) the best counts, of licences that all hold (AND) the worst."""
        expression = component.licence.expression
        if not expression:
            return self.unknown
        return self._of(licensing().parse(expression))

    def _of(self, parsed: Any) -> Judgement:
        operator = getattr(parsed, "operator", "").strip()
        if operator in ("OR", "AND"):
            found = [self._of(one) for one in parsed.args]
            return (min if operator == "OR" else max)(found, key=_ORDER.index)
        whole = str(parsed)
        # The longer name first: an exception may be allowed where its licence is not.
        return (
            self._named(whole, exception=True)
            or self._named(whole.split(" WITH ")[0], exception=False)
            or self.otherwise
        )

    def _named(self, name: str, *, exception: bool) -> Judgement | None:
        for judgement in reversed(_ORDER):
            patterns: tuple[str, ...] = getattr(self, judgement)
            if any(
                fnmatchcase(name, pattern)
                for pattern in patterns
                if (" WITH " in pattern) == exception
            ):
                return judgement
        return None


def read_policy(path: Path) -> LicencePolicy:
    """A policy file.

    Raises:
        SpecError: it is none; the message says where.
        FileAccessError: it cannot be read.
    """
    hint = "See docs/review.md for its keys."
    with disk_errors("reading", path):
        if path.stat().st_size > _MAX_POLICY:
            raise SpecError(f"{path}: over {_MAX_POLICY} bytes", hint=hint)
        data = path.read_bytes()
    try:
        return LicencePolicy.model_validate(yaml.safe_load(data.decode()) or {})
    except ValidationError as cause:
        first = cause.errors(include_url=False, include_context=False)[0]
        raise SpecError(
            f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}", hint=hint
        ) from cause
    except (yaml.YAMLError, ValueError, RecursionError) as cause:
        raise SpecError(f"{path}: is no YAML: {shown(str(cause))}", hint=hint) from cause
