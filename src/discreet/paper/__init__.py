"""The paper's tables and figures, made again: `discreet reproduce`."""
