// The little that pages need beyond the theme.
const zh = document.documentElement.lang.startsWith("zh");

// Names for what the theme builds without one: the buttons of code annotations.
const name = () => {
  for (const link of document.querySelectorAll(".md-annotation__index:not([aria-label])")) {
    const number = link.firstElementChild?.dataset.mdAnnotationId ?? "";
    link.setAttribute("aria-label", (zh ? "注释 " : "Note ") + number);
  }
};
new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
name();

// The language switch: instant navigation changes the page but not the header, so
// the twin is that of the page in view, and of the section in view.
const select = document.querySelector(".md-select[data-root]");
const root = new URL(select.dataset.root, location.href).href;
for (const link of select.querySelectorAll("a[hreflang]")) {
  link.addEventListener("click", () => {
    // After instant navigation the address may still hold an anchor of the old page.
    const here = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const rest = location.href.slice(root.length).split("#")[0] + (here ? location.hash : "");
    link.href = new URL(`../${link.hreflang}/${rest}`, root).href;
  });
}

// The search listens to keys going up; pasted text and some input methods send none.
document.querySelector("[data-md-component=search-query]").addEventListener("input", (event) => {
  if (!event.isComposing) event.target.dispatchEvent(new Event("keyup"));
});

// The ledger: one button a verdict. Without scripts every claim is shown.
const choose = () => {
  const claims = [...document.querySelectorAll(".claim")];
  if (!claims.length || document.querySelector(".verdicts")) return;
  const bar = document.createElement("div");
  bar.className = "verdicts";
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", zh ? "按结论筛选" : "Filter by verdict");
  const show = (chosen) => {
    for (const button of bar.children) button.setAttribute("aria-pressed", button.value === chosen);
    for (const claim of claims) claim.hidden = chosen !== "" && claim.dataset.verdict !== chosen;
  };
  const add = (value, label, count) => {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", value, textContent: `${label} ${count}` });
    button.addEventListener("click", () => show(value));
    bar.append(button);
  };
  add("", zh ? "全部" : "all", claims.length);
  for (const verdict of new Set(claims.map((claim) => claim.dataset.verdict))) {
    const same = claims.filter((claim) => claim.dataset.verdict === verdict);
    add(verdict, same[0].querySelector(".verdict").textContent, same.length);
  }
  claims[0].before(bar);
  show("");
};
// A link to a claim that the filter hides shows all claims again.
const reveal = () => {
  if (document.getElementById(location.hash.slice(1))?.closest(".claim[hidden]")) {
    document.querySelector(".verdicts button").click();
  }
};
window.addEventListener("hashchange", reveal);
new MutationObserver(choose).observe(document.body, { childList: true, subtree: true });
choose();
