"""``python -m defgpa``: the command line where the command itself is not on the path."""

from defgpa.cli import main

if __name__ == "__main__":
    main()
