import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

# the survey
labels = [
    "HIV", "cancer", "psychosis",
    "depression", "diabetes", "epilepsy", "miscarriage", "addiction",
    "flu", "cold", "headache", "back pain", "toothache", "allergy", "sprain",
    "stomach bug", "migraine", "cough", "insomnia", "nothing",
]  # fmt: skip
epsilon = 1  # what the serious labels need; without levels all get it
answers = pd.read_csv("answers.csv")["answer"]

# perturb and count
client = UEClient(epsilon, len(labels), use_oue=True, index_mapper=labels.index)
server = UEServer(epsilon, len(labels), use_oue=True, index_mapper=labels.index)
reports = [client.privatise(answer) for answer in answers]
server.aggregate_all(reports)

# counts with intervals
counts = server.estimate_all(labels)
n, p, q = server.n, server.p, server.q
variance = n * q * (1 - q) / (p - q) ** 2 + counts.clip(0, n) * (1 - p - q) / (p - q)
margin = 1.96 * np.sqrt(variance)
columns = {"item": labels, "count": counts, "lower": counts - margin, "upper": counts + margin}
pd.DataFrame(columns).to_csv("counts.csv", index=False)

# plot
plt.barh(labels, counts, xerr=margin)
plt.xlabel("people, with 95 % intervals")
plt.tight_layout()
plt.savefig("counts.png")
