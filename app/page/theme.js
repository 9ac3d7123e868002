// Dark or light, before anything is painted: what the reader chose, else what the system prefers.
// This is not a module, as those run only after the first paint.

(() => {
  const KEY = "pumice-theme";
  const chosen = localStorage.getItem(KEY);
  if (chosen) document.documentElement.dataset.theme = chosen;

  globalThis.pumiceTheme = {
    isDark() {
      const given = document.documentElement.dataset.theme;
      return given ? given === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    },
    turn() {
      const next = this.isDark() ? "light" : "dark";
      document.documentElement.dataset.theme = next;
      localStorage.setItem(KEY, next);
    },
  };
})();
