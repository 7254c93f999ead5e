"""The paper's tables and figures, made again: `discreet reproduce`.

There is one module per table or figure. Its `TARGET` says what it runs, shows and claims.
`run.reproduce` runs them.
"""
