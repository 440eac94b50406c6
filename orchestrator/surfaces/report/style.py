"""How a report looks, light and dark, wide and narrow. One constant; knows no facts."""

from __future__ import annotations

from typing import Final

__all__ = ["REPORT_STYLE"]

REPORT_STYLE: Final = """\
:root{--ink:#1f2328;--soft:#57606a;--line:#d0d7de;--page:#fff;--card:#f6f8fa;--ok:#1a7f37;
--okbg:#dafbe1;--bad:#b42318;--badbg:#ffebe9;--wait:#7d4e00;--waitbg:#fff8c5;--bar:#8fb8f0}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9198a1;--line:#30363d;--page:#0d1117;
--card:#161b22;--ok:#3fb950;--okbg:#12261a;--bad:#ff7b72;--badbg:#2d1517;--wait:#d29922;
--waitbg:#272115;--bar:#316dca}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1040px;margin:0 auto;padding:24px 20px 48px}
h1{font-size:26px;margin:2px 0;line-height:1.25}
h2{font-size:17px;margin:34px 0 10px}
.run{margin:0;color:var(--soft);font:13px ui-monospace,monospace}
.when{margin:2px 0 0;color:var(--soft)}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(104px,1fr));gap:10px;margin:20px 0 0}
.figures div{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:8px 12px}
.figures dt{color:var(--soft);font-size:12px}
.figures dd{margin:0;font-size:20px;font-variant-numeric:tabular-nums;white-space:nowrap}
.wide svg{max-width:100%;min-width:560px;height:auto;display:block}
.wide svg.plan{min-width:0}
summary{cursor:pointer;color:var(--soft);margin:0 0 8px}
.wide{overflow-x:auto;border:1px solid var(--line);border-radius:8px;padding:8px}
table{width:100%;border-collapse:collapse;font-size:14px}
th{text-align:left;color:var(--soft);font-weight:500;font-size:12px;white-space:nowrap}
th,td{padding:6px 10px 6px 0;border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:anywhere}
td{min-width:9ch}
td.number,td:empty{min-width:0}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
code{font:13px ui-monospace,monospace}
.badge{display:inline-block;border-radius:999px;padding:0 9px;font-size:12px;line-height:20px;
white-space:nowrap;vertical-align:middle;font-weight:500}
.badge.ok{color:var(--ok);background:var(--okbg)}
.badge.bad{color:var(--bad);background:var(--badbg)}
.badge.wait{color:var(--wait);background:var(--waitbg)}
.none,footer{color:var(--soft)}
footer{margin-top:40px;border-top:1px solid var(--line);padding-top:12px;font-size:13px}
svg text{font:13px system-ui,sans-serif;fill:var(--ink)}
svg .small{font-size:11px;fill:var(--soft)}
.time .tick{stroke:var(--line)}
.time .ok rect{fill:var(--okbg);stroke:var(--ok)}
.time .bad rect{fill:var(--badbg);stroke:var(--bad)}
.time .wait rect{fill:var(--waitbg);stroke:var(--wait)}
.time .call rect{fill:var(--bar);stroke:none}
.time .call.bad rect{fill:var(--bad);stroke:none}
.time .call.open rect{fill:var(--waitbg);stroke:var(--wait);stroke-dasharray:3 2}
.time .cross path{stroke:var(--bad);stroke-width:2;fill:none}
.plan rect{fill:var(--card);stroke:var(--soft);stroke-width:1.5}
.plan .edge{fill:none;stroke:var(--soft)}
.plan .ok rect{stroke:var(--ok);fill:var(--okbg)}
.plan .bad rect{stroke:var(--bad);fill:var(--badbg)}
.plan .wait rect{stroke:var(--wait);fill:var(--waitbg)}
.plan .off rect{stroke-dasharray:4 3}
@media(max-width:640px){
main{padding:16px 14px 40px}
thead{display:none}
table,tbody,tr,td{display:block;width:100%}
tr{border:1px solid var(--line);border-radius:8px;padding:6px 10px;margin:0 0 10px}
td{border:0;padding:2px 0;min-width:0;text-align:left;display:flex;justify-content:space-between;gap:14px}
td::before{content:attr(data-head);color:var(--soft);font-size:12px;flex:none;padding-top:2px}
.number{white-space:normal}
}
@media print{.wide{overflow:visible}section{break-inside:avoid}}
"""
"""The style sheet of a page."""
