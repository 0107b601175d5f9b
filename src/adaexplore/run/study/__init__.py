"""Studies: arms, problems and seeds as one campaign, and what the arms make of the problems."""
