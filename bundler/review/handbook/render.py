"""Markdown -> HTML that loads nothing: headings with anchors, links between pages, no raw HTML."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

from bundler.review.handbook.sources import Page

# A link's path and fragment -> where it leads in the site; None: to nothing that travels along.
Resolve = Callable[[Page, str], "str | None"]
_OUTSIDE = re.compile(r"^(https?|mailto):")


@dataclass(frozen=True)
class Rendered:
    """A page's body and its headings of second rank: anchor and text."""

    body: str
    headings: tuple[tuple[str, str], ...]


def anchor(text: str) -> str:
    """The anchor that GitHub gives a heading, so that links hold in both places."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def render(page: Page, resolve: Resolve, prefix: str = "") -> Rendered:
    """One page.

    Args:
        page: which.
        resolve: where links lead.
        prefix: before every anchor, where several pages are one.
    """
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(page.text)
    seen: dict[str, int] = {}
    headings: list[tuple[str, str]] = []
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            text = _text(tokens[number + 1].children or ())
            name = anchor(text)
            count = seen[name] = seen.get(name, -1) + 1
            token.attrSet("id", prefix + (f"{name}-{count}" if count else name))
            if token.tag == "h2":
                headings.append((str(token.attrGet("id")), text))
        elif token.type == "inline":
            token.children = list(_inline(token.children or (), page, resolve))
    html = str(parser.renderer.render(tokens, parser.options, {}))
    html = html.replace("<table>", '<div class="scroll" tabindex="0"><table>')
    # A column without a name has no header for a screen reader to announce.
    html = html.replace("<th></th>", "<td></td>")
    return Rendered(html.replace("</table>", "</table></div>"), tuple(headings))


def target(page: Page, href: str) -> tuple[str, str]:
    """Path in the checkout and fragment of a link of a page."""
    path, _, fragment = href.partition("#")
    if not path:
        return page.path, fragment
    return posixpath.normpath(posixpath.join(posixpath.dirname(page.path), path)), fragment


def _inline(children: Sequence[Token], page: Page, resolve: Resolve) -> Iterator[Token]:
    """Links led to their places; those that lead nowhere become their text, pictures their description."""
    dropped = 0
    for token in children:
        if token.type == "image":
            said = Token("text", "", 0)
            said.content = f"[{token.content}]"
            yield said
        elif token.type == "link_open":
            href = str(token.attrGet("href") or "")
            place = href if _OUTSIDE.match(href) else resolve(page, href)
            if place is None:
                dropped += 1
            else:
                token.attrSet("href", place)
                yield token
        elif token.type == "link_close" and dropped:
            dropped -= 1
        else:
            yield token


def _text(children: Sequence[Token]) -> str:
    return "".join(one.content for one in children if one.type in ("text", "code_inline"))
