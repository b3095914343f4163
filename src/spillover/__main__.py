"""`python -m spillover`, the same as the command `spillover`."""

from spillover.cli import main

if __name__ == "__main__":
    main(prog_name="spillover")
