/* Opens the page of a run in a report: reports/replay has the page, which is there once, and each run's data. */
"use strict";
for (const run of document.querySelectorAll("details.replay"))
  run.addEventListener("toggle", async () => {
    if (!run.open || run.querySelector("iframe")) return;
    const frame = run.appendChild(document.createElement("iframe"));
    frame.title = run.querySelector("summary").textContent;
    const packed = Uint8Array.from(atob(document.getElementById("replay").textContent), c => c.charCodeAt(0));
    const page = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
    const [before, after] = page.split('id="data">');
    frame.addEventListener("load", () => {
      const content = frame.contentDocument.documentElement;  // all of it is shown, including the legend at its end
      new ResizeObserver(() => { frame.style.height = `${content.scrollHeight}px`; }).observe(frame.contentDocument.body);
    });
    frame.srcdoc = before + 'id="data">' + run.querySelector("script").textContent + after;
  });
