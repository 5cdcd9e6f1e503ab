"""`python -m hango` is the command line."""

from hango.cli.main import main

if __name__ == "__main__":
    main()
