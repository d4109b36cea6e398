"""`python -m kclient COMMAND`: what people ask of a cluster from a terminal.

Data go to standard output and talk to standard error. What a failure means is in the exit code, the same for every
command (`exit_codes.py`), and its text contains the next step. Output has no colour, and moves only on a terminal.
"""
