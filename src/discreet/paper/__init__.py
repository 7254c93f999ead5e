"""The paper's tables and figures, made again: `discreet reproduce`.

One module per table or figure, with what it runs, shows and claims (`TARGET`); `run.reproduce`
runs them.
"""
