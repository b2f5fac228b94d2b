"""How a report looks.  Colours are named once for light and once for dark."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root {
  --page: #f6f7f9; --card: #ffffff; --ink: #1b2430; --soft: #5b6675; --line: #dfe4ea;
  --turns: #4f7fd9; --retries: #f0a04b; --landed: #1f8a5b; --bad: #d1493f; --cut: #9aa5b1;
  --rebuild: #8a63d2; --warn: #c98a00; --outage: #d1493f; --asked: #c9d1da;
  --hue-a: #2f6fd6; --hue-b: #d9691e; --hue-c: #1f8a5b; --hue-d: #b0368c;
  --hue-e: #7a55c7; --hue-f: #0f8fa3; --hue-g: #9a7400; --hue-h: #c43d3d;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #10151b; --card: #182028; --ink: #e8edf3; --soft: #9fb0c0; --line: #2b3640;
    --turns: #5b8def; --retries: #f0a04b; --landed: #4cc38a; --bad: #f0716a; --cut: #667482;
    --rebuild: #b296f2; --warn: #f2c14e; --outage: #f0716a; --asked: #3a4652;
    --hue-a: #6ea0f5; --hue-b: #f29a58; --hue-c: #4cc38a; --hue-d: #e67cc6;
    --hue-e: #b296f2; --hue-f: #4fc3d4; --hue-g: #d8b64a; --hue-h: #f0716a;
  }
}
* { box-sizing: border-box }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif }
main { max-width: 1120px; margin: 0 auto; padding: 40px 20px 64px }
h1 { font-size: 30px; line-height: 1.2; margin: 0 0 8px; letter-spacing: -.01em }
h2 { font-size: 24px; line-height: 1.25; margin: 0 0 8px; letter-spacing: -.01em }
h3 { font-size: 16px; margin: 0; display: inline }
header p { color: var(--soft); margin: 0 }
nav { display: flex; flex-wrap: wrap; gap: 6px 16px; margin-top: 12px }
a { color: var(--turns) }
.changed { list-style: none; margin: 8px 0 0; padding: 0; display: flex; flex-wrap: wrap;
  gap: 6px 20px; font-size: 14px }
.changed span { color: var(--soft) }
section { margin-top: 44px }
.lead { font-size: 18px; color: var(--soft); margin: 0 0 20px; max-width: 76ch }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px }
.tiles div, figure, .wide, details { background: var(--card); border: 1px solid var(--line);
  border-radius: 10px }
.tiles div { padding: 14px 16px }
.tiles b { display: block; font-size: 28px; line-height: 1.15; font-weight: 650;
  font-variant-numeric: tabular-nums; letter-spacing: -.02em; white-space: nowrap }
.tiles span { color: var(--soft); font-size: 14px }
figure { margin: 14px 0 0; padding: 16px 16px 8px }
figcaption { margin-bottom: 6px }
figcaption > span { color: var(--soft); font-size: 14px; margin-left: 10px }
.legend { float: right; font-size: 13px; color: var(--soft) }
.key { margin-left: 14px; white-space: nowrap }
.key i { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 5px;
  vertical-align: -1px }
svg { display: block; width: 100%; height: auto; clear: both }
svg text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: var(--soft) }
svg .middle { text-anchor: middle }
svg .end { text-anchor: end }
svg .note { fill: var(--ink); font-weight: 600 }
svg .row { font-size: 13px; fill: var(--ink) }
.grid { stroke: var(--line); stroke-width: 1 }
path.turns, i.turns { fill: var(--turns); background: var(--turns) }
path.retries, i.retries { fill: var(--retries); background: var(--retries) }
path.landed { fill: none; stroke: var(--landed); stroke-width: 2.25; stroke-linejoin: round }
.key i.landed { background: var(--landed); height: 3px; vertical-align: 4px }
rect.outage { fill: var(--outage); opacity: .12 }
rect.bar { fill: var(--turns) }
.mark { stroke: var(--ink); stroke-width: 1; stroke-dasharray: 3 3 }
rect.good, i.good { fill: var(--landed); background: var(--landed) }
rect.bad, i.bad { fill: var(--bad); background: var(--bad) }
rect.cut { fill: var(--cut) }
rect.rebuild, i.rebuild { fill: var(--rebuild); background: var(--rebuild) }
line.wait { stroke: var(--cut); stroke-width: 2; stroke-dasharray: 2 4; stroke-linecap: round }
.key i.wait { background: none; border-top: 2px dotted var(--cut); border-radius: 0; height: 0;
  vertical-align: 4px; width: 16px }
.warned { fill: var(--warn) }
.key i.warned { background: var(--warn); clip-path: polygon(50% 8%, 100% 92%, 0 92%) }
.error { fill: var(--bad) }
.key i.error { background: var(--bad); border-radius: 0; width: 9px; height: 9px }
.acted { fill: var(--ink) }
.key i.acted { background: var(--ink); clip-path: polygon(50% 0, 100% 50%, 50% 100%, 0 50%) }
path.asked, i.asked { fill: var(--asked); background: var(--asked) }
.whos { list-style: none; margin: 14px 0 0; padding: 0; display: grid; gap: 6px }
.whos i, .key i.who { display: inline-block; width: 22px; height: 0; margin-right: 8px;
  vertical-align: 4px; background: none; border-top: 3px solid var(--hue); border-radius: 0 }
.whos b { margin-right: 10px }
.whos span { color: var(--soft); font-size: 15px }
path.who { fill: none; stroke: var(--hue); stroke-width: 1.75; stroke-linejoin: round }
path.first { stroke-width: 2.75 }
.hue0 { --hue: var(--hue-a) }
.hue1 { --hue: var(--hue-b) }
.hue2 { --hue: var(--hue-c) }
.hue3 { --hue: var(--hue-d) }
.hue4 { --hue: var(--hue-e) }
.hue5 { --hue: var(--hue-f) }
.hue6 { --hue: var(--hue-g) }
.hue7 { --hue: var(--hue-h) }
path.stroke1 { stroke-dasharray: 7 3 }
path.stroke2 { stroke-dasharray: 2 3 }
path.stroke3 { stroke-dasharray: 9 3 2 3 }
.whos i.stroke1, .key i.stroke1 { border-top-style: dashed }
.whos i.stroke2, .key i.stroke2 { border-top-style: dotted }
.whos i.stroke3, .key i.stroke3 { border-top-style: double }
.compared td { white-space: nowrap; font-variant-numeric: tabular-nums }
.better { color: var(--landed) }
.worse { color: var(--bad) }
.below { color: var(--soft); font-size: 14px; margin: 8px 2px 0 }
.wide { margin-top: 14px; overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-size: 15px }
th, td { text-align: left; padding: 7px 16px; border-bottom: 1px solid var(--line);
  vertical-align: top }
tbody tr:last-child > * { border-bottom: 0 }
thead th { font-size: 13px; color: var(--soft); font-weight: 600 }
tbody th { font-weight: 600; white-space: nowrap }
.answers td:nth-child(2) { font-variant-numeric: tabular-nums; white-space: nowrap }
.answers td:nth-child(3) { color: var(--soft); font-size: 14px }
.part th { font-weight: 400; padding-left: 32px }
details { padding: 12px 16px }
summary { cursor: pointer; font-weight: 600 }
pre { overflow-x: auto; font-size: 13px; line-height: 1.45 }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace }
footer { margin-top: 32px; color: var(--soft); font-size: 13px }
@media print { body { background: none } section { break-inside: avoid } }
"""
