"""The handbook's look: that of the reviewer's page, with a list of pages beside the text."""

from __future__ import annotations

CSS = """
:root{--bg:#fff;--soft:#f5f6f8;--line:#d8dce2;--ink:#1b1f24;--dim:#59636e;--link:#2057b4;color-scheme:light dark}
@media screen and (prefers-color-scheme:dark){:root{--bg:#14171b;--soft:#1d2126;--line:#363d46;--ink:#e8eaed;
--dim:#a2abb6;--link:#8ab4ff}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.65 "Pretendard","Noto Sans KR","Noto Sans CJK KR",
"Malgun Gothic","Apple SD Gothic Neo",system-ui,sans-serif;word-break:keep-all;overflow-wrap:anywhere}
.frame{display:grid;grid-template-columns:250px minmax(0,1fr);gap:36px;max-width:1240px;margin:0 auto;padding:24px 20px}
nav{font-size:13.5px;border-right:1px solid var(--line);padding-right:14px}
nav p{margin:14px 0 4px;color:var(--dim);font-weight:600}nav ul{list-style:none;margin:0;padding:0}
nav li{margin:3px 0}nav a{text-decoration:none}nav [aria-current]{font-weight:700;color:var(--ink)}
main{padding-bottom:60px}
code,pre{font:12.5px/1.55 ui-monospace,"D2Coding","Cascadia Mono",Consolas,"DejaVu Sans Mono","Noto Sans CJK KR",monospace}
code{word-break:break-all}
pre{padding:12px 14px;background:var(--soft);border:1px solid var(--line);border-radius:8px;white-space:pre-wrap}
h1{font-size:26px;line-height:1.3;margin:4px 0 14px}
h2{font-size:19px;margin:36px 0 12px;padding-bottom:6px;border-bottom:2px solid var(--line)}
h3{font-size:16px;margin:26px 0 8px}
p{margin:0 0 10px}a{color:var(--link)}.dim{color:var(--dim)}
.lang{float:right;margin:0 0 0 14px}.in{columns:2;font-size:13.5px;padding-left:18px;color:var(--dim)}
.scroll{overflow-x:auto;margin:0 0 14px}
table{border-collapse:collapse;font-size:13.5px}
th,td{padding:6px 9px;border-bottom:1px solid var(--line);text-align:left;vertical-align:top;min-width:56px}
th{background:var(--soft);font-weight:600}
.sheet{border-top:6px double var(--line);margin-top:48px;padding-top:24px}.sheet:first-child{border:0;margin:0;padding:0}
@media screen and (max-width:820px){.frame{display:block;padding:14px}nav{border-right:0;border-bottom:1px solid var(--line);
padding:0 0 12px;margin-bottom:18px}nav ul{columns:2}.in{columns:1}h1{font-size:22px}}
@media print{@page{size:A4;margin:14mm}body{font-size:9.5pt}.frame{display:block;max-width:none;padding:0}
nav{border:0;columns:2;font-size:9pt}.lang,.in{display:none}h2,h3{break-after:avoid}tr,pre{break-inside:avoid}
.sheet{break-before:page;border:0}.scroll{overflow:visible}table{font-size:8pt}}
"""
