// Before the first paint, so that a chosen theme does not flash in: the only script that is no module.
(() => {
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
})();
