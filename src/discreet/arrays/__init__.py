"""The same encodings for many people at once."""

from discreet.errors import require

require("count", "numpy", "scipy", "numba", "pyarrow", "cryptography")
