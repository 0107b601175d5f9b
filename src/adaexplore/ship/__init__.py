"""A verified winner as a package that needs torch and Triton alone, and its check later."""
