// A refusal never replaces an unsaved text, which can be saved after signing in again.
"use strict";
(() => {
  const main = document.getElementById("main");
  const said = (text) => { document.getElementById("said").textContent = text; };
  const ended = document.getElementById("ended");
  const refused = document.getElementById("refused");
  const unsaved = () => [...main.querySelectorAll("textarea:not([readonly])")].some((one) => one.value !== one.defaultValue);
  const explain = (text) => {
    refused.querySelector("p").textContent = text;
    refused.hidden = !text;
    if (text) refused.scrollIntoView({ block: "nearest" });
  };
  const key = document.getElementById("ended-key");
  const problem = document.getElementById("ended-problem");

  document.addEventListener("htmx:beforeRequest", (event) => {
    const isForm = event.detail.elt.matches("form");
    if (ended.hidden) {
      if (isForm) explain("");
      return;
    }
    event.preventDefault();
    if (isForm) resume("You are signed in again. Save your text now.", true).then(() => { if (!ended.hidden) key.focus(); });
  });
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    const { elt, xhr } = event.detail;
    const state = xhr.getResponseHeader("X-Panel-Session");
    const writes = elt.matches("textarea") || Boolean(elt.closest("form")?.querySelector("textarea"));
    if (!state && xhr.status < 400) return;
    if (!unsaved() && !writes) return;
    event.preventDefault();
    if (state === "ended") stop();
    else if (state === "other") resume("You have signed in again. Save your text now.");
    else if (!elt.matches("textarea")) explain(`${reason(xhr)} Your text is not saved, and stays on this page.`);
  });
  document.addEventListener("htmx:sendError", (event) => {
    if (unsaved() && event.detail.elt.matches("form")) explain("The service does not answer. Your text is not saved, and stays on this page.");
  });
  ended.querySelector("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.textContent = "";
    const body = new URLSearchParams(new FormData(event.target));
    try {
      const answer = await fetch(event.target.action, { method: "POST", body });
      const found = await answer.json();
      if (answer.ok) renew(found, "You are signed in again. Save your text now.");
      else problem.textContent = found.problem;
    } catch { problem.textContent = "Signing in failed: try again in a moment."; }
    key.value = "";
  });
  document.getElementById("ended-elsewhere").addEventListener("click", () => resume("You are signed in again. Save your text now."));
  window.addEventListener("focus", () => { if (!ended.hidden) resume("You are signed in again. Save your text now.", true); });

  function reason(xhr) {
    const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
    return page.querySelector(".callout p")?.textContent ?? "The request was refused.";
  }

  function stop() {
    if (!ended.hidden) return;
    ended.hidden = false;
    document.getElementById("ended-title").focus();
    said("Your session has ended. Your text is not saved, and stays on this page.");
  }

  // Another tab at the same address has signed in.
  async function resume(text, quietly = false) {
    try {
      const answer = await fetch("/panel/session", { redirect: "manual" });
      const found = answer.ok ? await answer.json() : null;
      if (found?.tenant === main.dataset.tenant) { renew(found, text); return; }
      if (quietly) return;
      stop();
      problem.textContent = found
        ? "You are signed in to another project. Sign in to this project here, or copy your text."
        : "You are not signed in at this address. Sign in here, or copy your text.";
    } catch { if (!quietly) stop(); }
  }

  function renew(found, text) {
    main.dataset.token = found.token;
    main.setAttribute("hx-headers", JSON.stringify({ "X-Panel-Token": found.token }));
    for (const field of document.querySelectorAll("input[name=token]")) field.value = found.token;
    ended.hidden = true;
    explain("");
    said(text);
    main.querySelector("textarea:not([readonly])")?.focus();
  }
})();
