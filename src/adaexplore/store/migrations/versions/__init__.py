"""One script a format. A script is frozen: it names its tables itself."""
