// Runs before the first paint, so that a chosen theme does not flash in. It is the only script that is not a module.
(() => {
  try {
    const chosen = localStorage.getItem("theme");
    if (chosen) document.documentElement.dataset.theme = chosen;
  } catch {
    // The browser blocks storage: the theme is the system's.
  }
})();
