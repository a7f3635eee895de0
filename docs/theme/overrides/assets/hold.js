// The search index and its worker are most of a first visit's bytes. They wait until a
// reader reaches for the search: a box, its button, one of its keys, or an address
// that holds a query.
{
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
  // The words of a query that no page has, said above its results.
  const tell = (absent) => {
    const place = document.querySelector("[data-absent]");
    place.hidden = !absent.length;
    place.textContent = absent.map((word) => place.dataset.absent.replace("{}", word)).join(" ");
  };
  // A worker that is fetched with the first message to it, which brings the index.
  const Started = window.Worker;
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.url = url;
    }
    postMessage(message) {
      this.worker ??= this.started();
      this.worker.postMessage(message);
    }
    started() {
      const worker = new Started(this.url);
      worker.addEventListener("error", () => this.dispatchEvent(new Event("error")));
      worker.addEventListener("message", ({ data }) => {
        this.dispatchEvent(new MessageEvent("message", { data }));
        if (data.data?.items) tell(data.data.absent ?? []);
      });
      return worker;
    }
    terminate() {
      this.worker?.terminate();
    }
  };
  const SEARCH = ".md-search, [for=__search], open-search";
  for (const type of ["focusin", "pointerdown"]) {
    addEventListener(type, (event) => event.target.closest?.(SEARCH) && release(), true);
  }
  addEventListener("keydown", (event) => ["/", "s", "f"].includes(event.key) && release(), true);
}
