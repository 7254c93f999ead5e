import pandas as pd

import discreet as d

# the survey
policy = d.Policy.from_levels(
    [
        ("serious", 1, ["HIV", "cancer", "psychosis"]),
        ("personal", 1.2, ["depression", "diabetes", "epilepsy", "miscarriage", "addiction"]),
        ("common", 2, ["flu", "cold", "headache", "back pain", "toothache", "allergy", "sprain",
                       "stomach bug", "migraine", "cough", "insomnia", "nothing"]),
    ]
)  # fmt: skip
mechanism = d.design(policy, goal="total")
answers = pd.read_csv("answers.csv")["answer"]

# perturb and count
reports = mechanism.perturb_many(answers)
tally = mechanism.tally(reports)

# counts with intervals
estimate = tally.estimate()
estimate.save("counts.csv")

# plot
estimate.plot("counts.png")
