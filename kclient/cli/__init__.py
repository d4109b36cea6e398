"""`python -m kclient COMMAND`: commands for the terminal.

Data go to standard output, messages to standard error. The exit code names the kind of failure, the same for every
command (`exit_codes.py`), and its text contains the next step. Output has no colour, and moves only on a terminal.
"""
