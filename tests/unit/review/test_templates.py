"""Chat templates that walk from a text to Python's classes are found; usual ones are not."""

from __future__ import annotations

import pytest

from bundler.review.templates import MAX_TEMPLATE, suspicious


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ x|attr('__glo' ~ 'bals__') }}",
        "{{ x['__cla' + 'ss__'] }}",
        "{{ x['__class__'] }}",
        "{{ lipsum.__globals__['os'] }}",
        "{{ '{0.__class__}'.format(x) }}",
        "{% set n = '__class__' %}{{ x[n] }}",
        "{{ (messages|map(attribute='__class__')|list) }}",
        "{% include 'other' %}",
        "{{ f.gi_frame.f_back }}",
    ],
)
def test_walks_are_found(template: str) -> None:
    found, fault = suspicious(template)
    assert found
    assert not fault


@pytest.mark.parametrize(
    "template",
    [
        "{% for message in messages %}<|im_start|>{{ message['role'] + '\\n' + message.content }}{% endfor %}",
        "{% if tools is defined %}{{ tools | tojson(indent=4) }}{% endif %}",
        "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}",
        "{% for m in messages %}{% if loop.index0 > 3 %}{% break %}{% endif %}{{ messages[loop.index0 - 1].role }}{% endfor %}",
        "{{ strftime_now('%d %b %Y') }}{{ raise_exception('no') if not messages }}{{ '__' }}",
    ],
)  # fmt: skip
def test_what_real_templates_do_is_nothing(template: str) -> None:
    assert suspicious(template) == ((), "")


def test_what_does_not_parse_is_said_and_searched_by_words() -> None:
    found, fault = suspicious("{% for %}{{ ''.__class__ }}")
    assert "__class__" in found[0]
    assert fault.startswith("does not parse")
    assert suspicious("{{ " + "(" * 5000)[1]
    assert "over" in suspicious("a" * (MAX_TEMPLATE + 1))[1]
