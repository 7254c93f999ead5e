"""From tallies to counts with their errors."""
