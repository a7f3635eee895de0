// Go to the reader's language. Without scripts the page shows both links.
const wanted = navigator.languages?.length ? navigator.languages : [navigator.language || ""];
const first = wanted.find((tag) => /^(zh|en)\b/i.test(tag)) || "en";
location.replace(/^zh\b/i.test(first) ? "zh/" : "en/");
