"""The page's look: light and dark, 400 px to A4. No font, image or script comes from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

CSS = """
:root{--bg:#fff;--soft:#f5f6f8;--line:#d8dce2;--ink:#1b1f24;--dim:#59636e;--pass:#166b2d;--fail:#c9252d;
--hold:#8a5a00;--passbg:#e6f4ea;--failbg:#fdeaea;--holdbg:#fdf3d8;--p50:#2563c9;--p95:#c2660c;--p99:#8e3a9d;
--bar:#2b7a78;--limit:#c9252d;color-scheme:light dark}
@media screen and (prefers-color-scheme:dark){:root{--bg:#14171b;--soft:#1d2126;--line:#363d46;--ink:#e8eaed;
--dim:#a2abb6;--pass:#57c878;--fail:#ff7b78;--hold:#e5b54b;--passbg:#15301e;--failbg:#3b1a1c;--holdbg:#372b10;
--p50:#78a9ff;--p95:#f0a04b;--p99:#d48ae0;--bar:#56b8b4;--limit:#ff7b78}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.6 "Pretendard","Noto Sans KR",
"Noto Sans CJK KR","Malgun Gothic","Apple SD Gothic Neo",system-ui,sans-serif;word-break:keep-all;
overflow-wrap:anywhere}
nav,.page{max-width:1080px;margin:0 auto;padding:0 20px}
.page{padding-bottom:48px}
code,pre{font:13px/1.55 ui-monospace,"D2Coding","Cascadia Mono",Consolas,"DejaVu Sans Mono",monospace}
code{overflow-wrap:anywhere;word-break:break-all}
.metric{white-space:nowrap}.scroll+.dim{margin-top:6px}
pre{margin:0;white-space:pre-wrap;word-break:break-all}
h1{font-size:26px;line-height:1.3;margin:4px 0}
h2{font-size:19px;margin:40px 0 12px;padding-bottom:6px;border-bottom:2px solid var(--line)}
h3{font-size:15px;margin:14px 0 6px}figure h3{margin-top:0}
p{margin:0 0 8px}
.dim{color:var(--dim)}
.lang{position:absolute;opacity:0;width:1px;height:1px}
nav{display:flex;justify-content:flex-end;gap:4px;padding-top:14px}
nav label{padding:3px 14px;border:1px solid var(--line);border-radius:6px;cursor:pointer;font-size:14px;
color:var(--dim)}
#ko:checked~nav [for=ko],#en:checked~nav [for=en]{background:var(--ink);color:var(--bg);
border-color:var(--ink)}
#ko:focus-visible~nav [for=ko],#en:focus-visible~nav [for=en]{outline:3px solid var(--p50);outline-offset:2px}
#ko:checked~.page .en,#en:checked~.page .ko{display:none}
.top{display:flex;justify-content:space-between;gap:24px;align-items:flex-start;flex-wrap:wrap;
margin-top:14px}
.top>div{flex:1 1 320px}
.sign{border-collapse:collapse;font-size:13px;text-align:center}
.sign th,.sign td{border:1px solid var(--dim);width:76px;padding:2px 6px;font-weight:400}
.sign td{height:48px}
.verdict{margin:18px 0 0;padding:18px 22px;border-radius:10px;border:2px solid}
.verdict strong{display:block;font-size:34px;line-height:1.25}
.verdict p{color:var(--ink);margin:4px 0 0}
.verdict ul{margin:10px 0 0;padding-left:20px;color:var(--ink);font-size:14px}
.PASS{color:var(--pass)}.FAIL{color:var(--fail)}.INCONCLUSIVE,.NOT_COMPARABLE{color:var(--hold)}
.verdict.PASS{background:var(--passbg)}.verdict.FAIL{background:var(--failbg)}
.verdict.INCONCLUSIVE,.verdict.NOT_COMPARABLE{background:var(--holdbg)}
.unsigned{margin:12px 0 0;padding:10px 16px;border-left:6px solid var(--fail);background:var(--failbg);
color:var(--fail);font-weight:700}
.red{color:var(--fail);font-weight:700}
dl{display:grid;grid-template-columns:max-content 1fr;gap:6px 20px;margin:0}
dt{color:var(--dim)}dd{margin:0;min-width:0}
table.data{border-collapse:collapse;width:100%;font-size:14px}
.data th,.data td{padding:7px 10px;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
.data thead th{background:var(--soft);font-weight:600;white-space:nowrap}
.data .num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.data tbody th{font-weight:400}
.data tr.first>*{border-top:2px solid var(--line)}
.tag{font-weight:700;white-space:nowrap}
.scroll{overflow-x:auto}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));gap:16px}
figure{margin:0;padding:14px 16px 8px;border:1px solid var(--line);border-radius:10px;break-inside:avoid}
figcaption{font-size:13px;color:var(--dim);margin-top:2px}
svg{display:block;width:100%;height:auto;font:12px system-ui,"Noto Sans KR","Noto Sans CJK KR",
"Malgun Gothic",sans-serif}
svg text{fill:var(--dim)}.m{text-anchor:middle}.e{text-anchor:end}svg .value{fill:var(--ink)}
.axis{stroke:var(--line);fill:none}.limit{stroke:var(--limit);stroke-dasharray:6 4;stroke-width:1.5}
svg .limit-text{fill:var(--limit)}
.line{fill:none;stroke-width:2}
.s0{stroke:var(--p50);fill:var(--p50)}.s1{stroke:var(--p95);fill:var(--p95)}
.s2{stroke:var(--p99);fill:var(--p99)}.line.s0,.line.s1,.line.s2{fill:none}
.line.s1{stroke-dasharray:7 3}.line.s2{stroke-dasharray:2 3}
.bar{fill:var(--bar)}
.dots{fill:none;stroke:var(--p50);stroke-opacity:.6;stroke-width:6;stroke-linecap:round}
.whisker{stroke:var(--dim);fill:none}.box-half{fill:var(--p50);fill-opacity:.25;stroke:var(--p50)}
.middle{stroke:var(--ink);stroke-width:2;fill:none}
.range-bar{min-width:160px;max-width:300px}.rail{fill:var(--line)}.range{fill:var(--bar);fill-opacity:.45}
.one{fill:var(--dim)}.bar-a{fill:var(--dim)}.bar-b{fill:var(--p50)}
tr.differs>*{background:var(--holdbg)}.pair td{width:36%}
.mark.PASS{fill:var(--pass)}.mark.FAIL{fill:var(--fail)}.mark.INCONCLUSIVE{fill:var(--hold)}
.meter{height:4px;width:100%;min-width:60px;margin-top:3px}
.band{fill:var(--line);fill-opacity:.28}.band.b1{fill-opacity:.55}.brake{fill:var(--hold)}
.cross{stroke:var(--fail);stroke-width:2;fill:none}
.verdict .capacity{list-style:none;padding:0;font-size:16px;font-weight:600}
tr.best>*{background:var(--passbg)}tr.best>:first-child{box-shadow:inset 4px 0 0 var(--pass)}
.best-mark{display:inline-block;padding:0 8px;border-radius:9px;background:var(--pass);color:var(--bg);
font-size:12px;font-weight:700;white-space:nowrap}
.ladder{margin-bottom:14px}.ladder td:first-child strong{font-size:17px}
.panel td,.panel th{white-space:nowrap}
.box,figure,h2,.terms{position:relative}
.term{border-bottom:1px dotted var(--dim);cursor:help}
:focus-visible{outline:3px solid var(--p50);outline-offset:2px;border-radius:2px}
.terms{display:flex;flex-wrap:wrap;gap:4px 16px;font-size:13px;color:var(--dim);margin:-4px 0 10px}
.tip{display:none;position:absolute;z-index:9;max-width:340px;margin:4px 0 0;padding:9px 13px;border-radius:8px;
background:var(--ink);color:var(--bg);font:400 13px/1.5 system-ui,"Noto Sans KR","Noto Sans CJK KR","Malgun Gothic",
sans-serif;white-space:normal;text-align:left}
.tip b{display:block}
.term:hover>.tip,.term:focus>.tip{display:block}
figure .tip{left:16px;right:16px}.terms .tip{left:0;right:0}.num .tip{right:0}
.glossary dt{max-width:230px}
.warn{margin:0;padding-left:20px;color:var(--hold)}
.foot{margin-top:40px;font-size:13px;color:var(--dim);border-top:1px solid var(--line);padding-top:10px}
@media screen and (max-width:640px){
nav,.page{padding-left:14px;padding-right:14px}h1{font-size:22px}.sign{display:none}
dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:8px}.glossary dt{max-width:none}
.tip,figure .tip,.terms .tip,.num .tip{position:fixed;left:12px;right:12px;bottom:12px;max-width:none}
.scroll .data:not(.pair) td{min-width:84px}.scroll .data:not(.pair) td:last-child{min-width:200px}
.cards thead{display:none}.cards,.cards tbody,.cards tr,.cards td{display:block;width:100%}
.cards tr{border:1px solid var(--line);border-radius:8px;padding:6px 2px;margin-bottom:10px}
.cards tr.first>*{border-top:0}
.cards td{border:0;padding:3px 12px}.cards td.num{text-align:left}
.cards td:empty{display:none}
.cards td::before{color:var(--dim);font-size:13px;font-weight:400}
}
@media print{@page{size:A4;margin:14mm}
body{font-size:10.5pt}nav,.lang,.tip,.terms{display:none}.page{max-width:none;padding:0}
h2{margin-top:22px;break-after:avoid}figure,.verdict,tr,dl>*{break-inside:avoid}
.scroll{overflow:visible}table.data{font-size:9pt}.data th,.data td{padding:4px 6px}
.data thead th,.panel td,.panel th,.data .num{white-space:normal}.panel{font-size:8pt}.term{border:0}
.range-bar{min-width:90px}.metric{white-space:normal}
.grid{grid-template-columns:1fr 1fr;gap:10px}figure{padding:8px}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
"""


def labels(table: str, heads: Sequence[tuple[str, str]]) -> str:
    """Rules that put a column's name before each cell where a phone shows rows as cards.

    Args:
        table: the table's class.
        heads: Korean and English of each column; no quotes in them.
    """
    rules = "".join(
        f'#{language}:checked~.page .{table} td:nth-child({place}):before{{content:"{words} "}}'
        for place, head in enumerate(heads, 1)
        for language, words in zip(("ko", "en"), head, strict=True)
    )
    return f"@media screen and (max-width:640px){{{rules}}}"
