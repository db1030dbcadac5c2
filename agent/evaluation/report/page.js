"use strict";
(() => {
  const table = document.getElementById("cases");
  const tools = document.getElementById("tools");
  if (!table || !tools) return;
  const cases = [...table.tBodies];
  const search = document.getElementById("search");
  const which = document.getElementById("which");
  const family = document.getElementById("family");
  const count = document.getElementById("count");
  const texts = new Map(cases.map((one) => [one, one.textContent.toLowerCase()]));
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const one of cases) {
      const fits =
        words.every((word) => texts.get(one).includes(word)) &&
        (!which.value || one.dataset.state.split(" ").includes(which.value)) &&
        (!family.value || one.dataset.family === family.value);
      one.hidden = !fits;
      shown += fits ? 1 : 0;
    }
    count.textContent = `${shown} of ${cases.length} cases`;
  };
  for (const input of [search, which, family]) input.addEventListener("input", show);
  const names = new Intl.Collator(undefined, { numeric: true });
  [...table.tHead.rows[0].cells].forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (one) => one.rows[0].cells[place].dataset.key ?? one.rows[0].cells[place].textContent;
      const sorted = [...cases].sort((a, b) => (down ? -1 : 1) * names.compare(key(a), key(b)));
      table.append(...sorted);
    });
  });
  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const inside = target && target.querySelector("details");
    if (!inside) return;
    target.hidden = false;
    inside.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", open);
  tools.hidden = false;
  show();
  open();
})();
