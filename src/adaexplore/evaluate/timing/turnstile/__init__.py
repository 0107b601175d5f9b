"""The turnstile: a timed process gets the inputs of a call after the outputs of the one before."""
