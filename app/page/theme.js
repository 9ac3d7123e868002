// Dark or light, before anything is painted: what the reader chose, else what the system prefers.
// This is not a module, as those run only after the first paint.

(() => {
  const KEY = "pumice-theme";
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = kept();

  function kept() {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // the browser keeps nothing
    }
  }

  function keep(theme) {
    chosen = theme;
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // it is known until the page is loaded anew
    }
  }

  function show() {
    document.documentElement.dataset.theme = chosen ?? (system.matches ? "dark" : "light");
  }

  show();
  system.addEventListener("change", () => {
    show();
    dispatchEvent(new Event("theme"));
  });

  globalThis.pumiceTheme = {
    isDark() {
      return document.documentElement.dataset.theme === "dark";
    },
    turn() {
      keep(this.isDark() ? "light" : "dark");
      show();
      dispatchEvent(new Event("theme"));
    },
  };
})();
