"""The proof: the exact check, in integers, and the numbers that it looks at."""
