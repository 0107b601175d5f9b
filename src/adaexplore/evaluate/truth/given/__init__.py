"""What a reference is given: input sets, relations between inputs, and weights."""
