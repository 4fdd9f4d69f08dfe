"""The site: a file for each page, and one page that holds all, to print and to lie beside a bundle."""

from __future__ import annotations

from html import escape

from bundler.review.handbook.render import render, target
from bundler.review.handbook.sources import Page, page_file
from bundler.review.handbook.style import CSS

# Beside the pages: everything on one page.
WHOLE = "all.html"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def site(pages: list[Page]) -> dict[str, bytes]:
    """File name -> bytes; the same pages give the same bytes."""
    there = {page.path for page in pages}

    def resolve(page: Page, href: str) -> str | None:
        path, fragment = target(page, href)
        if path == page.path:
            return f"#{fragment}"
        if path not in there:
            return None
        return page_file(path) + (f"#{fragment}" if fragment else "")

    files = {}
    for page in pages:
        made = render(page, resolve)
        contents = "".join(
            f'<li><a href="#{name}">{escape(text)}</a></li>' for name, text in made.headings
        )
        inside = f'<ul class="in">{contents}</ul>' if len(made.headings) > 2 else ""
        body = _languages(page, there) + made.body.replace("</h1>", f"</h1>{inside}", 1)
        files[page.file] = _document(page.title, page.korean, _navigation(pages, page), body)
    return {**files, WHOLE: whole(pages)}


def whole(pages: list[Page]) -> bytes:
    """Every page in one file, with its contents first."""
    slugs = {page.path: page.slug for page in pages}

    def resolve(page: Page, href: str) -> str | None:
        path, fragment = target(page, href)
        if path not in slugs:
            return None
        return f"#{slugs[path]}" + (f"--{fragment}" if fragment else "")

    body = "".join(
        f'<section class="sheet" id="{page.slug}" lang="{_lang(page.korean)}">'
        f"{render(page, resolve, f'{page.slug}--').body}</section>\n"
        for page in pages
    )
    contents = "".join(
        f'<li lang="{_lang(page.korean)}"><a href="#{page.slug}">{escape(page.title)}</a></li>'
        for page in pages
    )
    menu = f'<nav aria-label="Pages"><p class="dim">airbundle</p><ul>{contents}</ul></nav>'
    return _document("airbundle", False, menu, body)


def _navigation(pages: list[Page], here: Page) -> str:
    """Every page, in groups; of two languages the one that is read now."""
    parts = [f'<nav aria-label="Pages"><p><a href="{WHOLE}">한 페이지로 / On one page</a></p>']
    group: tuple[str, str] | None = None
    paths = {page.path for page in pages}
    for page in pages:
        other = (
            page.path.replace(".ko.md", ".md")
            if page.korean
            else page.path.replace(".md", ".ko.md")
        )
        if other in paths and page.korean != here.korean:
            continue
        if page.group != group:
            parts.append(
                ("</ul>" if group else "") + f"<p>{page.group[0]} / {page.group[1]}</p><ul>"
            )
            group = page.group
        current = ' aria-current="page"' if page == here else ""
        parts.append(f'<li><a href="{page.file}"{current}>{escape(page.title)}</a></li>')
    return "".join(parts) + "</ul></nav>"


def _languages(page: Page, there: set[str]) -> str:
    if page.korean:
        other, word, lang = page.path.replace(".ko.md", ".md"), "English", "en"
    else:
        other, word, lang = page.path.replace(".md", ".ko.md"), "한국어", "ko"
    if other not in there:
        return ""
    return f'<p class="lang"><a href="{page_file(other)}" lang="{lang}">{word}</a></p>'


def _document(title: str, korean: bool, menu: str, body: str) -> bytes:
    return (
        f'<!DOCTYPE html>\n<html lang="{_lang(korean)}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{escape(title)}</title><style>{CSS}</style></head><body>"
        f'<div class="frame">{menu}\n<main>{body}</main></div></body></html>\n'
    ).encode()


def _lang(korean: bool) -> str:
    return "ko" if korean else "en"
