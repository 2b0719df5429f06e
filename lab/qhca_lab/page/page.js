// SPDX-License-Identifier: GPL-2.0-or-later
"use strict";
// Everything is in the document already; this only shows and hides.
(function () {
  const root = document.documentElement;
  const stories = Array.from(document.querySelectorAll(".story"));
  const links = Array.from(document.querySelectorAll("nav li a"));
  const card = document.querySelector(".card");
  const filter = document.querySelector("nav input");
  let now = null, step = null, zoom = 0;
  if (!stories.length) return;
  root.classList.add("js");

  function steps() {
    return now ? Array.from(now.querySelectorAll(".step")) : [];
  }

  function choose(story, silent) {
    if (!story || story === now) return;
    if (now) now.classList.remove("on");
    now = story;
    now.classList.add("on");
    links.forEach(function (a) {
      if (a.hash === "#" + now.id) {
        a.setAttribute("aria-current", "true");
        const li = a.parentNode, list = li.closest(".lists");
        const top = li.offsetTop;
        if (top < list.scrollTop || top + li.offsetHeight > list.scrollTop + list.clientHeight) {
          list.scrollTop = top - list.clientHeight / 2;
        }
      } else {
        a.removeAttribute("aria-current");
      }
    });
    if (!silent && location.hash !== "#" + now.id) history.pushState(null, "", "#" + now.id);
    close();
    scale();
  }

  function pick(g) {
    if (step) step.classList.remove("on");
    step = g;
    if (!g) return;
    g.classList.add("on");
    const about = document.getElementById("w" + g.dataset.step);
    card.replaceChildren();
    const shut = document.createElement("button");
    shut.textContent = "close";
    shut.addEventListener("click", close);
    card.append(shut);
    if (about) Array.from(about.children).forEach(function (c) { card.append(c.cloneNode(true)); });
    card.classList.add("on");
    g.scrollIntoView({ block: "nearest", inline: "nearest" });
    // Not over the step itself.
    card.classList.toggle("left", g.getBoundingClientRect().right > innerWidth / 2);
  }

  function close() {
    if (step) step.classList.remove("on");
    step = null;
    card.classList.remove("on");
  }

  function scale() {
    const box = now && now.querySelector(".scroll");
    if (!box) return;
    const room = box.clientWidth;
    box.querySelectorAll("svg").forEach(function (svg) {
      const natural = svg.viewBox.baseVal.width;
      // Fitted, but not too small to read.
      const w = zoom === 0 ? Math.max(Math.min(natural, room), natural * 0.7) : natural * zoom;
      svg.setAttribute("width", w);
      svg.setAttribute("height", w * svg.viewBox.baseVal.height / natural);
    });
  }

  function current() {
    const svg = now && now.querySelector(".scroll svg");
    return svg ? svg.width.baseVal.value / svg.viewBox.baseVal.width : 1;
  }

  function seen() {
    return links.filter(function (a) { return !a.parentNode.hidden; });
  }

  function move(by) {
    const list = seen();
    const at = list.findIndex(function (a) { return now && a.hash === "#" + now.id; });
    const to = list[Math.min(Math.max(at + by, 0), list.length - 1)];
    if (to) choose(document.getElementById(to.hash.slice(1)));
  }

  function go(by) {
    const all = steps();
    const at = step ? all.indexOf(step) : by > 0 ? -1 : all.length;
    const to = all[at + by];
    if (to) { pick(to); to.focus({ preventScroll: true }); }
  }

  const deeds = {
    in: function () { zoom = Math.min(current() * 1.25, 4); scale(); },
    out: function () { zoom = Math.max(current() / 1.25, 0.2); scale(); },
    fit: function () { zoom = 0; scale(); },
    next: function () { move(1); },
    previous: function () { move(-1); },
    down: function () { go(1); },
    up: function () { go(-1); }
  };
  const keys = { "+": "in", "=": "in", "-": "out", "0": "fit", "n": "next", "p": "previous",
    "j": "down", "k": "up", "ArrowDown": "down", "ArrowUp": "up" };

  document.addEventListener("click", function (event) {
    const deed = event.target.closest("[data-do]");
    const g = event.target.closest(".step");
    const a = event.target.closest("a[href^='#m']");
    if (deed) { deeds[deed.dataset.do](); return; }
    if (g) { if (g === step) close(); else pick(g); return; }
    if (a) {
      const story = document.getElementById(a.hash ? a.hash.slice(1) :
        a.getAttribute("href").slice(1));
      if (story) { event.preventDefault(); choose(story); }
    }
  });

  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.target === filter) {
      if (event.key === "Escape") { filter.value = ""; sift(); filter.blur(); }
      if (event.key === "Enter" && seen()[0]) {
        choose(document.getElementById(seen()[0].hash.slice(1)));
        filter.blur();
      }
      return;
    }
    if (event.key === "Escape") { close(); return; }
    if (event.key === "/") { event.preventDefault(); filter.focus(); return; }
    if ((event.key === "Enter" || event.key === " ") && event.target.closest(".step")) {
      event.preventDefault();
      pick(event.target.closest(".step"));
      return;
    }
    const deed = keys[event.key];
    if (deed) { event.preventDefault(); deeds[deed](); }
  });

  function sift() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    links.forEach(function (a) {
      const text = a.textContent.toLowerCase();
      a.parentNode.hidden = !words.every(function (w) { return text.includes(w); });
    });
  }

  document.querySelectorAll(".step").forEach(function (g) {
    g.setAttribute("tabindex", "0");
    g.setAttribute("role", "button");
  });
  // Drag to move about in a picture that is larger than its frame.
  document.querySelectorAll(".scroll").forEach(function (box) {
    let from = null;
    box.addEventListener("pointerdown", function (e) {
      if (e.button || e.target.closest(".step") || e.pointerType !== "mouse") return;
      from = [e.clientX + box.scrollLeft, e.clientY + box.scrollTop];
    });
    window.addEventListener("pointermove", function (e) {
      if (!from) return;
      box.scrollLeft = from[0] - e.clientX;
      box.scrollTop = from[1] - e.clientY;
    });
    window.addEventListener("pointerup", function () { from = null; });
    box.addEventListener("wheel", function (e) {
      if (!e.ctrlKey) return;
      e.preventDefault();
      deeds[e.deltaY > 0 ? "out" : "in"]();
    }, { passive: false });
  });
  filter.addEventListener("input", sift);
  window.addEventListener("resize", scale);
  function named() {
    return stories.find(function (s) { return "#" + s.id === location.hash; });
  }
  function begin() {
    choose(named() || document.querySelector(".story.first"), true);
  }
  window.addEventListener("popstate", begin);
  begin();
}());
