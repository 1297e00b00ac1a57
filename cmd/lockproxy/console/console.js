"use strict";
// Shows the page anew every five seconds, while it is looked at and nobody writes into it.
(() => {
  const every = 5000, main = () => document.querySelector("main");
  const refresh = document.querySelector("#refresh"), stale = document.querySelector("#stale");
  refresh.hidden = false;
  let last = Date.now();
  setInterval(async () => {
    const field = document.activeElement;
    if (!refresh.querySelector("input").checked || document.hidden || main().contains(field) && field.matches("input, select")) return;
    try {
      const reply = await fetch(location.href, {headers: {Accept: "text/html"}, signal: AbortSignal.timeout(every)});
      if (!reply.ok) throw new Error(reply.statusText);
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      main().replaceWith(page.querySelector("main"));
      last = Date.now();
      stale.textContent = "";
    } catch {
      stale.textContent = "no answer for " + Math.round((Date.now() - last) / 1000) + " s: what follows may be old";
    }
  }, every);
})();
