"""`python -m adaexplore`."""

from adaexplore.cli import main

if __name__ == "__main__":
    main()
