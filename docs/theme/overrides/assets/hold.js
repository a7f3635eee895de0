// The search index is most of a first visit's bytes. It waits until a reader reaches for
// the search: the box, its button, one of its keys, or an address that holds a query.
const { open, send } = XMLHttpRequest.prototype;
let waiting = new URLSearchParams(location.search).has("q") ? null : [];
XMLHttpRequest.prototype.open = function (method, url, ...rest) {
  this.isIndex = /\/search_index\.json$/.test(url);
  return open.call(this, method, url, ...rest);
};
XMLHttpRequest.prototype.send = function (...body) {
  if (waiting && this.isIndex) waiting.push(() => send.apply(this, body));
  else send.apply(this, body);
};
const release = () => {
  const all = waiting ?? [];
  waiting = null;
  for (const go of all) go();
};
const SEARCH = ".md-search, [for=__search]";
for (const type of ["focusin", "pointerdown"]) {
  addEventListener(type, (event) => event.target.closest?.(SEARCH) && release(), true);
}
addEventListener("keydown", (event) => ["/", "s", "f"].includes(event.key) && release(), true);
