// What the browser keeps for the page, on this device or in this tab. A browser may forbid it; then it lasts until the page is closed.

function inMemory() {
  const kept = new Map();
  return { getItem: (name) => kept.get(name) ?? null, setItem: (name, value) => void kept.set(name, String(value)), removeItem: (name) => void kept.delete(name) };
}

function storage(name) {
  try {
    const found = window[name]; // throws where storage is blocked
    found.setItem("probe", "1"); // throws where it has no room
    found.removeItem("probe");
    return found;
  } catch {
    return inMemory();
  }
}

export const device = storage("localStorage");
export const tab = storage("sessionStorage");
