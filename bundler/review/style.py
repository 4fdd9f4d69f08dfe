"""The page's look: light and dark, phone to A4. No font, image or script comes from elsewhere."""

from __future__ import annotations

CSS = """
:root{--bg:#fff;--soft:#f5f6f8;--line:#d8dce2;--ink:#1b1f24;--dim:#59636e;--good:#1a7f37;--alarm:#c9252d;
--attention:#8a5a00;--alarmbg:#fdeaea;--attentionbg:#fdf3d8;--goodbg:#e6f4ea;--link:#2563c9;
color-scheme:light dark}
@media screen and (prefers-color-scheme:dark){:root{--bg:#14171b;--soft:#1d2126;--line:#363d46;
--ink:#e8eaed;--dim:#a2abb6;--good:#57c878;--alarm:#ff7b78;--attention:#e5b54b;--alarmbg:#3b1a1c;
--attentionbg:#372b10;--goodbg:#15301e;--link:#78a9ff}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.6 "Pretendard","Noto Sans KR",
"Noto Sans CJK KR","Malgun Gothic","Apple SD Gothic Neo",system-ui,sans-serif;word-break:keep-all;
overflow-wrap:anywhere}
nav,.page{max-width:1280px;margin:0 auto;padding:0 20px}
.page{padding-bottom:48px}
code,pre{font:12.5px/1.55 ui-monospace,"D2Coding","Cascadia Mono",Consolas,"DejaVu Sans Mono","Noto Sans CJK KR",
monospace}
code{word-break:break-all}
pre{margin:0 0 10px;padding:12px 14px;background:var(--soft);border:1px solid var(--line);border-radius:8px;
white-space:pre-wrap;word-break:break-all}
pre .note{color:var(--dim)}
h1{font-size:26px;line-height:1.3;margin:4px 0}
h2{font-size:19px;margin:40px 0 12px;padding-bottom:6px;border-bottom:2px solid var(--line)}
p{margin:0 0 10px}
a{color:var(--link)}
.dim{color:var(--dim)}
.lang{position:absolute;opacity:0;width:1px;height:1px}
nav{display:flex;justify-content:flex-end;gap:4px;padding-top:14px}
nav label{padding:3px 14px;border:1px solid var(--line);border-radius:6px;cursor:pointer;font-size:14px;
color:var(--dim)}
#ko:checked~nav [for=ko],#en:checked~nav [for=en]{background:var(--ink);color:var(--bg);border-color:var(--ink)}
#ko:focus-visible~nav [for=ko],#en:focus-visible~nav [for=en]{outline:3px solid var(--link);outline-offset:2px}
#ko:checked~.page .en,#en:checked~.page .ko{display:none}
.top{display:flex;justify-content:space-between;gap:24px;align-items:flex-start;flex-wrap:wrap;margin-top:14px}
.top>div{flex:1 1 320px}
.sign{border-collapse:collapse;font-size:13px;text-align:center}
.sign th,.sign td{border:1px solid var(--dim);width:76px;padding:2px 6px;font-weight:400}
.sign td{height:48px}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin:18px 0 0}
.figures div{padding:10px 14px;border:1px solid var(--line);border-radius:10px;background:var(--soft)}
.figures strong{display:block;font-size:22px;line-height:1.35}
.figures .alarm{background:var(--alarmbg)}.figures .attention{background:var(--attentionbg)}
.figures .good{background:var(--goodbg)}
.alarm{color:var(--alarm);font-weight:700}.attention{color:var(--attention);font-weight:700}.good{color:var(--good)}
p.alarm,p.attention,p.good{padding:10px 14px;border-left:5px solid;font-weight:500}
p.alarm{background:var(--alarmbg)}p.attention{background:var(--attentionbg)}p.good{background:var(--goodbg)}
dl{display:grid;grid-template-columns:minmax(150px,max-content) 1fr;gap:6px 20px;margin:0 0 12px}
dt{color:var(--dim)}dd{margin:0;min-width:0}
.scroll{overflow-x:auto;margin:0 0 14px}
table.data{border-collapse:collapse;width:100%;font-size:13.5px}
.data th,.data td{padding:6px 9px;border-bottom:1px solid var(--line);text-align:left;vertical-align:top;
min-width:56px}
.data th{background:var(--soft);font-weight:600;white-space:nowrap}
.data td code{font-size:12px}
.data td>.alarm,.data td>.attention,.data td>.good{white-space:nowrap}
.data td.long{min-width:190px}
.data .num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.data td:empty::after{content:"\\00a0"}
details{margin:0 0 14px}
summary{cursor:pointer;padding:6px 0;color:var(--link)}
.toc{columns:2;padding-left:20px;margin:16px 0 0}
.foot{margin-top:40px;font-size:13px;color:var(--dim);border-top:1px solid var(--line);padding-top:10px}
@media screen and (max-width:640px){nav,.page{padding-left:14px;padding-right:14px}h1{font-size:22px}
.sign{display:none}dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:8px}.toc{columns:1}}
@media print{@page{size:A4 landscape;margin:12mm}
body{font-size:9.5pt}nav,.lang{display:none}.page{max-width:none;padding:0}
h2{margin-top:18px;break-after:avoid}tr,dl>*,.figures div{break-inside:avoid}
details>*{display:block}details::details-content{content-visibility:visible}
.scroll{overflow:visible}table.data{font-size:8pt}.data th,.data td{padding:3px 5px;min-width:0}
.data td.long{min-width:0}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
"""
