import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client
from multi_freq_ldpy.pure_frequency_oracles.Variance_PURE import VAR_Pure

# the survey
labels = [
    "HIV", "cancer", "psychosis",
    "depression", "diabetes", "epilepsy", "miscarriage", "addiction",
    "flu", "cold", "headache", "back pain", "toothache", "allergy", "sprain",
    "stomach bug", "migraine", "cough", "insomnia", "nothing",
]  # fmt: skip
epsilon = 1  # what the serious labels need; without levels all get it
answers = pd.read_csv("answers.csv")["answer"].map(labels.index)

# perturb and count
n, k = len(answers), len(labels)
reports = [SS_Client(answer, k, epsilon) for answer in answers]
shares = SS_Aggregator_MI(reports, k, epsilon)

# counts with intervals
e, size = np.exp(epsilon), len(reports[0])
p = size * e / (size * e + k - size)
q = (size - p) / (k - 1)
counts, margin = n * shares, 1.96 * n * np.sqrt(VAR_Pure(p, q, n, shares))
columns = {"item": labels, "count": counts, "lower": counts - margin, "upper": counts + margin}
pd.DataFrame(columns).to_csv("counts.csv", index=False)

# plot
plt.barh(labels, counts, xerr=margin)
plt.xlabel("people, with 95 % intervals")
plt.tight_layout()
plt.savefig("counts.png")
