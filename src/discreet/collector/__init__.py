"""The collector (extra `serve`): an untrusted server that counts perturbed reports, its stores, its
pages, the browser client.
"""

from discreet.errors import require

require("serve", "numpy", "starlette", "uvicorn", "orjson", "segno")
