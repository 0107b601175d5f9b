"""Language models as proposers: from a model's reply to a candidate."""
