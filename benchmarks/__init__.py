"""Speed and memory, measured: `make bench`. Ratios are within one run; absolute rates
are for the machine at hand.
"""
