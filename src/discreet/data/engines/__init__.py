"""The same tally on other engines; the mathematics is the local one."""
