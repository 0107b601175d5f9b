"""The nouns of a verdict: the evaluation, the facts about a reference, labels and uses."""
