"""The page's style sheet."""

STYLE = """
:root {
  --ink: #1c2330; --muted: #5d6878; --paper: #fbfbf9; --card: #ffffff;
  --line: #dfe2e7; --accent: #2f7fd6; --hit: #1f8a4c; --miss: #c2413a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e6e9ee; --muted: #9aa5b5; --paper: #14181f; --card: #1c222c;
    --line: #313a48; --accent: #6fb0f5; --hit: #4cc27f; --miss: #f0817a;
  }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  overflow-wrap: anywhere;
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans",
    "Liberation Sans", sans-serif;
}
header, main { max-width: 68rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2.5rem; }
h1 { font-size: 2rem; line-height: 1.15; letter-spacing: -.02em; margin: 0; }
header p { color: var(--muted); margin: .4rem 0 1rem; }
nav {
  display: flex; flex-wrap: wrap; gap: .3rem 1.25rem; padding: .6rem 0;
  border-block: 1px solid var(--line);
}
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
section { margin: 2.5rem 0 3.5rem; }
h2 { font-size: 1.4rem; letter-spacing: -.01em; margin: 0 0 1rem; }
h3 { font-size: 1.1rem; margin: 2rem 0 .25rem; }
h4 {
  font-size: .8rem; font-weight: 600; color: var(--muted);
  margin: 1.25rem 0 .6rem;
  text-transform: uppercase; letter-spacing: .06em;
}
img, svg { max-width: 100%; height: auto; display: block; }
svg { width: 100%; }
svg text { font-family: inherit !important; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .45rem .8rem; text-align: right; white-space: nowrap; }
thead th { font-weight: 600; color: var(--muted); font-size: .9rem; }
thead tr:first-child th[colspan] { text-align: center; color: var(--ink); }
th[scope="row"] { text-align: left; font-weight: 500; padding-left: 0; }
tbody tr { border-top: 1px solid var(--line); }
tbody tr:last-child { border-bottom: 1px solid var(--line); }
td small, li small { display: block; color: var(--muted); font-size: .75rem; }
td b { font-weight: 650; }
tr.own td b { font-size: 1.1rem; }
.note, figcaption, .place { color: var(--muted); font-size: .875rem; }
.note { max-width: 46rem; }
details { margin-top: 1rem; }
summary { cursor: pointer; color: var(--accent); margin-bottom: .5rem; }
.figures {
  display: grid; gap: 1.25rem; margin-bottom: 1.5rem; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr));
}
figure, article {
  margin: 0; background: var(--card); border: 1px solid var(--line);
  border-radius: .6rem; padding: 1rem;
}
figcaption { margin-top: .5rem; }
.examples {
  display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr));
}
blockquote { margin: 0 0 .75rem; font-weight: 500; }
blockquote::before { content: "“"; } blockquote::after { content: "”"; }
ol { list-style: none; margin: 0; padding: 0; }
ol.images {
  display: grid; grid-template-columns: repeat(5, minmax(0, 1fr)); gap: .5rem;
}
ol.images li { text-align: center; position: relative; }
ol.images img {
  width: 100%; aspect-ratio: 1; object-fit: cover; border-radius: .35rem;
  border: 3px solid var(--miss);
}
ol.images li.hit img { border-color: var(--hit); }
article.i2t {
  display: grid; grid-template-columns: 8.5rem minmax(0, 1fr); gap: 0 1rem;
}
article.i2t img.query { width: 100%; border-radius: .35rem; }
article.i2t .place { grid-column: 1 / -1; }
ol.captions li {
  display: flex; gap: .5rem; padding: .2rem 0; font-size: .92rem;
  line-height: 1.35;
}
ol.captions li span { flex: 1; }
li.hit::before, li.miss::before { font-weight: 700; }
li.hit::before { content: "✓"; color: var(--hit); }
li.miss::before { content: "✗"; color: var(--miss); }
ol.images li::before {
  position: absolute; top: -.4rem; left: -.4rem;
  width: 1.35rem; height: 1.35rem;
  border-radius: 50%; background: var(--card); font-size: .8rem;
  line-height: 1.35rem;
}
.place { display: flex; align-items: center; gap: .75rem; margin: .75rem 0 0; }
.place img {
  width: 4rem; aspect-ratio: 1; object-fit: cover; border-radius: .35rem;
  border: 3px solid var(--hit);
}
@media (max-width: 40rem) {
  header { padding-top: 1.5rem; }
  h1 { font-size: 1.6rem; }
  table { font-size: .85rem; }
  th, td { padding: .4rem .25rem; }
  thead th, tr.own td b { font-size: inherit; }
  th[scope="row"] { white-space: normal; min-width: 3.5rem; }
  td small { white-space: normal; width: 2.5rem; margin-left: auto; }
  .figures + .scroll td { white-space: normal; text-align: left; }
  figure, article { padding: .7rem; }
  article.i2t { grid-template-columns: 6rem minmax(0, 1fr); gap: 0 .75rem; }
}
@media print { nav { display: none; } figure, article { break-inside: avoid; } }
"""
