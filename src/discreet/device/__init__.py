"""The participant's side, which turns an answer into a report. Standard library only.

>>> from discreet import Policy, design
>>> from discreet.device import perturb
>>> mechanism = design(Policy.from_budgets({"anemia": 1, "headache": 2}))  # or Mechanism.load(file)
>>> len(perturb(mechanism, "anemia")) == mechanism.report_size
True
"""

from discreet.device.client import Client, invitation
from discreet.device.ledger import Ledger
from discreet.device.perturb import perturb

__all__ = ["Client", "Ledger", "invitation", "perturb"]
