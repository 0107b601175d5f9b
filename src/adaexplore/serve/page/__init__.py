"""Live pages: searches and campaigns as they run, in a browser."""
