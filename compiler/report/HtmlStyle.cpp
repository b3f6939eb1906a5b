//===- HtmlStyle.cpp - how the html report looks, and what its script does -===//
//
// Colours are those of ten categories that people with any colour vision tell apart (after Tableau 10), on white and on
// black. The page is whole without its script, which only says what lies under the pointer.
//
//===----------------------------------------------------------------------===//
#include "compiler/report/Html.h"

#include <string_view>

namespace ds::report {

const std::string_view pageStyle = R"(
:root { color-scheme: light dark; --back: #fff; --text: #1c2024; --dim: #687078; --rule: #d9dde1; --shade: #f2f4f6; }
@media (prefers-color-scheme: dark) {
  :root { --back: #15181c; --text: #e3e6e9; --dim: #98a1aa; --rule: #353b42; --shade: #20252b; }
}
body { background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif; max-width: 1360px;
       margin: 2em auto; padding: 0 1em; overflow-wrap: anywhere; }
h1 { font-size: 1.6em; margin-bottom: .2em; } h2 { font-size: 1.25em; margin-top: 2.2em; border-bottom: 1px solid var(--rule); }
h3 { font-size: 1em; margin-bottom: .3em; }
.scroll { overflow-x: auto; overflow-wrap: normal; }
nav ul { columns: 20em; padding-left: 1.2em; } nav a { color: inherit; }
table { border-collapse: collapse; margin: .5em 0 1em; font-size: .93em; }
th, td { text-align: left; padding: .12em .9em .12em 0; vertical-align: top; }
th { color: var(--dim); font-weight: 500; overflow-wrap: normal; } tr:hover td { background: var(--shade); }
.right { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; } .inner { padding-left: 1.2em; }
td { overflow-wrap: break-word; } td:has(.swatch) { white-space: nowrap; } .dim, figcaption, output { color: var(--dim); }
code, pre { font: .9em ui-monospace, monospace; } pre { white-space: pre-wrap; overflow-wrap: anywhere; }
summary { cursor: pointer; } summary h2 { display: inline; border: 0; } details[id] { margin-top: 1em; } .side { display: flex; flex-wrap: wrap; gap: 0 3em; }
figure { margin: 1em 0; }
figure.memory { display: grid; grid-template-columns: minmax(0, 1fr) 15em; gap: 0 1em; align-items: start; }
figure.memory > :not(.names) { grid-column: 1; }
.drawing { overflow: auto; max-height: 95vh; } .drawing svg { min-width: 960px; }
.names { grid-column: 2; grid-row: 1; list-style: none; margin: 0; padding: 0; font-size: .8em; line-height: 1.3; }
.names li { display: flex; align-items: baseline; padding: .15em 0; cursor: pointer; break-inside: avoid; }
.names .swatch { flex: none; } .names .dim { flex: none; margin-left: auto; padding-left: .6em; } .names li:hover, .names .lit { background: var(--shade); }
.zoom { margin: 0; font-size: .93em; } .zoom button { font: inherit; min-width: 2.6em; }
output { display: block; min-height: 1.5em; font-size: .93em; position: sticky; bottom: 0; background: var(--back); } figcaption { font-size: .88em; }
svg { width: 100%; height: auto; display: block; font: 11px system-ui, sans-serif; }
svg text { fill: var(--text); pointer-events: none; } .end { text-anchor: end; } .middle { text-anchor: middle; }
.head { font-weight: 600; } .strong { font-weight: 600; }
.tick { stroke: var(--rule); } .limit { stroke: var(--text); stroke-dasharray: 5 3; }
path.peak { stroke: var(--text); stroke-dasharray: 2 2; } circle.peak { fill: var(--text); }
.cross { stroke: var(--text); opacity: .6; visibility: hidden; pointer-events: none; }
.call { fill: var(--shade); stroke: var(--back); } .backward { fill: var(--rule); }
.tile { stroke: var(--back); stroke-width: .3px; } .name { font-size: 9px; } svg text.name { fill: #000; } .tile:hover, .tile.lit { stroke: var(--text); stroke-width: 1.5px; }
.padding { fill: var(--shade); background: var(--shade); }
.k1 { fill: #4e79a7; background: #4e79a7; } .k2 { fill: #e15759; background: #e15759; }
.k3 { fill: #b07aa1; background: #b07aa1; } .k4 { fill: #59a14f; background: #59a14f; }
.k5 { fill: #edc948; background: #edc948; } .k6 { fill: #f28e2b; background: #f28e2b; }
.k7 { fill: #76b7b2; background: #76b7b2; } .k8 { fill: #9c755f; background: #9c755f; }
.swatch { display: inline-block; width: .8em; height: .8em; margin-right: .5em; border: 1px solid var(--rule); }
.legend { margin: .3em 0; } .legend > span { margin-right: .6em; white-space: nowrap; }
.bar { display: flex; height: 1em; min-width: 1px; } .bars td:last-child { width: 24em; }
@media (max-width: 900px) {
  figure.memory { display: block; } .names { columns: 14em; margin: .5em 0; } .bars td:last-child { width: 8em; min-width: 8em; }
}
@media (max-width: 500px) { body { margin: 1em auto; padding: 0 .8em; font-size: 14px; } .side { gap: 0; } .side > div { max-width: 100%; } }
)";

const std::string_view pageScript = R"(
const openTarget = () => { const to = document.getElementById(location.hash.slice(1)); if (to && to.localName == "details") to.open = true; };
addEventListener("hashchange", openTarget);
openTarget();
for (const figure of document.querySelectorAll("figure.memory")) {
  const data = JSON.parse(figure.querySelector("script").textContent);
  const svg = figure.querySelector("svg"), cross = svg.querySelector(".cross"), output = figure.querySelector("output");
  const number = value => value.toLocaleString("en");
  const light = buffer => {
    for (const one of figure.querySelectorAll(".lit")) one.classList.remove("lit");
    if (!buffer) return;
    for (const one of figure.querySelectorAll(`rect.${buffer}, [data-buffer=${buffer}]`)) one.classList.add("lit");
  };
  const point = event => {
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width - data.left;
    const at = Math.floor(x * data.columns.length / data.width);
    cross.style.visibility = at in data.columns ? "visible" : "hidden";
    if (!(at in data.columns)) return;
    cross.setAttribute("transform", `translate(${data.left + (at + .5) * data.width / data.columns.length} 0)`);
    const [when, ...bytes] = data.columns[at];
    const parts = data.kinds.map((kind, k) => bytes[k] ? `${kind} ${number(bytes[k])}` : "").filter(Boolean);
    const tile = event.target.classList.contains("tile") ? event.target : null;
    light(tile && [...tile.classList].find(name => /^b[0-9]+$/.test(name)));
    const buffer = tile ? tile.querySelector("title").textContent.split("\n").slice(0, 2).join(": ") + "; " : "";
    output.textContent = `${buffer}${when}: ${number(bytes.reduce((a, b) => a + b, 0))} live bytes: ${parts.join(", ")}`;
  };
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerdown", point);
  for (const item of figure.querySelectorAll(".names li"))
    for (const how of ["pointerenter", "click"]) item.addEventListener(how, () => light(item.dataset.buffer));
  for (const button of figure.querySelectorAll(".zoom button"))
    button.addEventListener("click", () => { svg.style.width = `${100 * button.textContent}%`; });
}
)";

} // namespace ds::report
