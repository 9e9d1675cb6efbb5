// Behaviour that htmx lacks: uploads with progress, polls that pause on hidden pages, earlier tasks.
"use strict";
(() => {
  const AT_ONCE = 3;
  const EARLIER = "rag-assets-tasks";
  const MOST_EARLIER = 5;
  const token = () => document.getElementById("main")?.dataset.token ?? "";
  const said = (text) => { document.getElementById("said").textContent = text; };
  const element = (name, properties = {}, children = []) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };

  // Polls pause while the page is hidden, and resume immediately when it is shown.
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden && event.detail.elt.matches("#watch, #replacement")) event.preventDefault();
  });

  const zone = document.getElementById("zone");
  if (zone && zone.getAttribute("aria-disabled") !== "true") uploads(zone);
  if (zone) for (const plain of zone.querySelectorAll("[data-plain]")) plain.hidden = true;

  function uploads(form) {
    const base = form.dataset.base;
    const queue = document.getElementById("queue");
    const input = form.querySelector("input[type=file]");
    const waiting = [];
    let running = 0;
    input.multiple = true;

    input.addEventListener("change", () => { take(input.files); input.value = ""; });
    form.addEventListener("submit", (event) => event.preventDefault());
    for (const kind of ["dragenter", "dragover"]) {
      form.addEventListener(kind, (event) => { event.preventDefault(); form.classList.add("over"); });
    }
    for (const kind of ["dragleave", "drop"]) {
      form.addEventListener(kind, () => form.classList.remove("over"));
    }
    form.addEventListener("drop", (event) => { event.preventDefault(); take(event.dataTransfer.files); });
    // A file dropped outside the zone must not replace the page.
    for (const kind of ["dragover", "drop"]) {
      window.addEventListener(kind, (event) => event.preventDefault());
    }

    function take(files) {
      for (const file of files) {
        const job = { file, replaces: "", row: element("li"), request: null };
        queue.append(job.row);
        ask(job);
      }
    }

    async function ask(job) {
      show(job, "Waiting", [button("Cancel", job, () => cancel(job))]);
      let found = null;
      try {
        const answer = await fetch(`${base}/same?name=${encodeURIComponent(job.file.name)}`);
        if (answer.ok && !answer.redirected) found = (await answer.json()).id;
      } catch { /* The upload itself reports the problem. */ }
      if (!job.row.isConnected) return;
      if (!found) { enqueue(job); return; }
      show(job, "A document with this name already exists.", [
        button("Replace", job, () => { job.replaces = found; enqueue(job); }),
        button("Keep both", job, () => enqueue(job)),
        button("Cancel", job, () => cancel(job)),
      ]);
    }

    function enqueue(job) {
      show(job, "Waiting", [button("Cancel", job, () => cancel(job))]);
      waiting.push(job);
      next();
    }

    function next() {
      while (running < AT_ONCE && waiting.length) send(waiting.shift());
    }

    function send(job) {
      running += 1;
      const bar = element("progress", { max: 1, value: 0, ariaLabel: `Upload of ${job.file.name}` });
      show(job, "Uploading", [button("Cancel", job, () => cancel(job))], bar);
      const data = new FormData();
      data.append("token", token());
      data.append("replaces", job.replaces);
      data.append("file", job.file);
      const request = job.request = new XMLHttpRequest();
      request.open("POST", form.action);
      request.setRequestHeader("X-Panel-Upload", "1");
      request.upload.addEventListener("progress", (event) => {
        if (event.lengthComputable) bar.value = event.loaded / event.total;
      });
      request.addEventListener("loadend", () => { running -= 1; job.request = null; next(); });
      request.addEventListener("load", () => ended(job, request));
      request.addEventListener("error", () => failed(job, "The connection was lost."));
      request.send(data);
    }

    function ended(job, request) {
      if (request.status >= 400) {
        const page = new DOMParser().parseFromString(request.responseText, "text/html");
        failed(job, page.querySelector(".callout p")?.textContent ?? "The upload was refused.");
        return;
      }
      let answer = null;
      try { answer = JSON.parse(request.responseText); } catch { location.reload(); return; }
      job.row.remove();
      said(answer.duplicate ? `${job.file.name} was already uploaded.` : `${job.file.name} was uploaded.`);
      htmx.trigger("#list", "refresh");
    }

    function failed(job, why) {
      show(job, why, [
        button("Try again", job, () => enqueue(job)),
        button("Dismiss", job, () => cancel(job)),
      ]);
      job.row.querySelector(".small").classList.add("bad-ink");
      said(`${job.file.name}: ${why}`);
    }

    function cancel(job) {
      const place = waiting.indexOf(job);
      if (place >= 0) waiting.splice(place, 1);
      job.request?.abort();
      job.row.remove();
      input.focus();
    }

    function show(job, text, buttons, bar) {
      const had = job.row.contains(document.activeElement);
      const what = element("div", {}, [
        element("b", { textContent: job.file.name }),
        element("p", { className: "small soft", textContent: text }),
      ]);
      job.row.replaceChildren(what, element("div", { className: "row" }, buttons), ...(bar ? [bar] : []));
      if (had) buttons[0]?.focus();
    }

    function button(label, job, act) {
      const made = element("button", { type: "button", textContent: label });
      made.setAttribute("aria-label", `${label}: ${job.file.name}`);
      made.addEventListener("click", act);
      return made;
    }
  }

  // Earlier tasks are kept until the tab is closed or the user signs out.
  document.querySelector(".out")?.addEventListener("submit", () => sessionStorage.removeItem(EARLIER));
  const trial = document.getElementById("trial");
  if (trial) earlier(trial);

  function earlier(form) {
    const place = document.getElementById("earlier");
    const field = form.querySelector("textarea");
    const known = () => JSON.parse(sessionStorage.getItem(EARLIER) ?? "[]");
    form.addEventListener("submit", () => {
      const task = field.value.trim();
      const tasks = [task, ...known().filter((one) => one !== task)].slice(0, MOST_EARLIER);
      if (task) sessionStorage.setItem(EARLIER, JSON.stringify(tasks));
      list();
    });
    function list() {
      const items = known().map((task) => {
        const again = element("button", { type: "button", textContent: task.slice(0, 80) });
        again.addEventListener("click", () => { field.value = task; form.requestSubmit(); });
        return element("li", {}, [again]);
      });
      place.querySelector("ul").replaceChildren(...items);
      place.hidden = !items.length;
    }
    list();
  }
})();
