"""Code of the user in a worker: references and candidates, their values, modules and files."""
