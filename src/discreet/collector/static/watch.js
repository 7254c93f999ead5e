// In words that every browser understands: without the page's own script, say that it is too old.
window.onload = function () {
  if (document.documentElement.hasAttribute("data-begun")) return;
  document.getElementById("old").hidden = false;
  document.getElementsByTagName("main")[0].className += " stuck";
};
