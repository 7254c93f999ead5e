// Before the participant's page, in a preview: the draft comes from the desk in this tab, and what
// the page would send or remember stays here. The policy of this page forbids every connection.
{
  const json = (value) => new Response(JSON.stringify(value), { headers: { "Content-Type": "application/json" } });
  const draft = window.sessionStorage.getItem("discreet-preview");
  window.fetch = async (url, { method = "GET", body } = {}) => {
    if (method === "GET" && draft) return new Response(draft);
    if (method === "POST" && body) return json({ accepted: 1, duplicates: 0 });
    throw new TypeError("this is a preview; open it from the desk");
  };
  const kept = new Map();
  const memory = {
    getItem: (key) => kept.get(String(key)) ?? null,
    setItem: (key, value) => { kept.set(String(key), String(value)); },
    removeItem: (key) => { kept.delete(String(key)); },
  };
  Object.defineProperty(window, "localStorage", { value: memory });
}
